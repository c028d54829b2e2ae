import java.math.BigInteger;
import java.util.Arrays;
import java.util.Comparator;
import java.util.stream.IntStream;

/** Cap index and class index: one codeword of a public codebook, chosen near a private direction. */
final class Codewords {
    private static final long GOLDEN = 0x9E3779B97F4A7C15L;
    private static final long SIGNS = 0xA24BAED4963EE407L;
    private static final long CLASSES = 0xD1B54A32D192ED03L;
    private static final BigInteger BOOKS = BigInteger.ONE.shiftLeft(48);
    private static final int WIDTH = 1 << 20;
    private static final double LOG_2 = 0.6931471805599453;
    private static final double ROOT = 0.7071067811865476;
    private static final double[] ODD = IntStream.range(0, 7).mapToDouble(k -> 1.0 / (2 * k + 1)).toArray();
    private static final double[] COSINE = {1, -1 / 2.0, 1 / 24.0, -1 / 720.0, 1 / 40320.0, -1 / 3628800.0};
    private static final double[] SINE = {1, -1 / 6.0, 1 / 120.0, -1 / 5040.0, 1 / 362880.0, -1 / 39916800.0};

    private Codewords() {}

    /** The numbers of a codebook and of a codeword, for a vector of the unit ball. */
    static double[] capIndex(double epsilon, int codewords, double[] vector, Draws.Words words) {
        int cap = Sizes.cap(codewords, vector.length, epsilon, 1);
        Drawn drawn = new Drawn(epsilon, codewords, cap, 1, vector, words);
        return new double[] {drawn.book, drawn.codeword(drawn.rank, drawn.turned ? -1 : 1)};
    }

    /** The same for a class and a vector, with several buckets of codewords. */
    static double[] classIndex(double epsilon, int codewords, int buckets, int classes, int label, double[] vector, Draws.Words words) {
        int cap = Sizes.cap(codewords, vector.length, epsilon, buckets);
        Drawn drawn = new Drawn(epsilon, codewords, cap, buckets, vector, words);
        int bucket = label, sign = 1;
        if (buckets < classes) {
            long start = mix(drawn.book ^ CLASSES);
            long[] bits = IntStream.range(0, classes).mapToLong(k -> mix(start + (k + 1) * CLASSES)).toArray();
            sign = bits[label] < 0 ? 1 : -1; // the highest bit
            bucket = (int) (Arrays.stream(bits).filter(one -> one << 1 >>> 1 < bits[label] << 1 >>> 1).count() % buckets);
        }
        int shift = drawn.rank / codewords;
        double codeword = drawn.codeword(drawn.rank % codewords, drawn.turned ? -sign : sign);
        return new double[] {drawn.book, codeword + (double) codewords * ((bucket + shift) % buckets)};
    }

    /** What is drawn for a report. */
    private static final class Drawn {
        final double[] direction;
        final boolean turned;
        final long book;
        final int rank;
        final int codewords;
        final int cap;

        Drawn(double epsilon, int codewords, int cap, int buckets, double[] vector, Draws.Words words) {
            this.codewords = codewords;
            this.cap = cap;
            double length = Math.sqrt(Arrays.stream(vector).map(x -> x * x).sum());
            direction = length > 0 ? Arrays.stream(vector).map(x -> x / length).toArray() : new double[vector.length];
            if (length == 0) direction[0] = 1;
            long along = (long) Math.rint(Math.min(length, 1) * WIDTH);
            turned = Draws.below(BigInteger.valueOf(2 * WIDTH), words).longValue() >= WIDTH + along;
            book = Draws.below(BOOKS, words).longValue();
            BigInteger likely = BigInteger.valueOf(cap), all = BigInteger.valueOf((long) buckets * codewords);
            BigInteger[] weights = Draws.weights(epsilon, likely, all, 62);
            BigInteger edge = likely.multiply(weights[0]);
            BigInteger coin = Draws.below(edge.add(all.subtract(likely).multiply(weights[1])), words);
            BigInteger found = coin.compareTo(edge) < 0 ? coin.divide(weights[0]) : likely.add(coin.subtract(edge).divide(weights[1]));
            rank = found.intValueExact();
        }

        /** The codeword with a rank: the cap, its opposites, then the other pairs. */
        int codeword(int rank, int sign) {
            int half = codewords / 2;
            double[] scores = scores(Arrays.stream(direction).map(x -> x * sign).toArray(), book, half);
            Comparator<Integer> nearest = Comparator.comparingDouble(row -> -Math.abs(scores[row]));
            int[] order = IntStream.range(0, half).boxed().sorted(nearest).mapToInt(Integer::intValue).toArray(); // stable: ties by number
            boolean near = rank < 2 * cap;
            int[] rows = near ? Arrays.copyOf(order, cap) : Arrays.copyOfRange(order, cap, half);
            Arrays.sort(rows);
            int row = rows[near ? rank % cap : (rank - 2 * cap) / 2];
            boolean opposite = near ? rank >= cap : (rank - 2 * cap) % 2 == 1;
            return scores[row] < 0 != opposite ? row + half : row;
        }
    }

    /** How far each row of a codebook lies along a direction. */
    private static double[] scores(double[] direction, long book, int half) {
        int columns = direction.length;
        long wanted = Math.min(Math.max(64, (1L << 22) / ((long) columns * columns * columns)), Math.max(1, (1L << 23) / ((long) half * (columns + 2))));
        long count = Long.highestOneBit(wanted);
        int shift = (int) (book / count % columns);
        long start = mix(book ^ SIGNS);
        double[] placed = new double[columns]; // the direction is moved instead of the codebook
        for (int j = 0; j < columns; j++) {
            long signs = mix(start + (j / 64 + 1) * SIGNS);
            placed[(j + shift) % columns] = Math.rint(direction[j] * WIDTH) * ((signs >>> (j % 64) & 1) == 1 ? -1 : 1);
        }
        return IntStream.range(0, half).mapToDouble(row -> {
            double[] entries = row(book % count, row, columns);
            double product = 0, square = 0;
            for (int j = 0; j < columns; j++) {
                product += entries[j] * placed[j];
                square += entries[j] * entries[j];
            }
            return product / (float) Math.sqrt(square);
        }).toArray();
    }

    /** One row of a public matrix, in steps of 2^-12. */
    private static double[] row(long matrix, int row, int columns) {
        int pairs = (columns + 1) / 2;
        double[] found = new double[2 * pairs];
        for (int j = 1; j <= pairs; j++) {
            long word = mix(((long) row * pairs + j) * GOLDEN + mix(matrix * GOLDEN + 1));
            double radius = Math.sqrt(-2 * logarithm((word & 0xFFFFFFFFL) + 0.5));
            double[] turned = turned((word >>> 32) * 0x1p-32);
            found[j - 1] = Math.rint(4096 * (radius * turned[0]));
            found[pairs + j - 1] = Math.rint(4096 * (radius * turned[1]));
        }
        double[] entries = Arrays.copyOf(found, columns);
        if (Arrays.stream(entries).allMatch(x -> x == 0)) entries[0] = 1;
        return entries;
    }

    /** log(x/2^32) by a polynomial, rounded the same everywhere. */
    private static double logarithm(double x) {
        int power = Math.getExponent(x) + 1;
        double part = Math.scalb(x, -power); // from ½ to 1
        if (part < ROOT) {
            part *= 2;
            power -= 1;
        }
        double ratio = (part - 1) / (part + 1);
        return 2 * ratio * horner(ratio * ratio, ODD) + (power - 32) * LOG_2;
    }

    /** Cosine and sine of a number of turns, from the nearest quarter. */
    private static double[] turned(double turns) {
        double quarter = Math.floor(4 * turns + 0.5);
        double angle = (turns - quarter / 4) * (2 * Math.PI);
        double square = angle * angle;
        double cosine = horner(square, COSINE), sine = angle * horner(square, SINE);
        return switch ((int) quarter % 4) {
            case 0 -> new double[] {cosine, sine};
            case 1 -> new double[] {-sine, cosine};
            case 2 -> new double[] {-cosine, -sine};
            default -> new double[] {sine, -cosine};
        };
    }

    private static double horner(double x, double[] coefficients) {
        double found = coefficients[coefficients.length - 1];
        for (int k = coefficients.length - 2; k >= 0; k--) found = found * x + coefficients[k];
        return found;
    }

    /** The output function of SplitMix64. */
    private static long mix(long state) {
        long z = (state ^ state >>> 30) * 0xBF58476D1CE4E5B9L;
        z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
        return z ^ z >>> 31;
    }
}
