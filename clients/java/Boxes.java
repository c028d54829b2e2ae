import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** The mechanisms for vectors of [-1, 1]^d: Laplace, piecewise, Duchi and hybrid. */
final class Boxes {
    static final List<String> NAMES = List.of("laplace", "piecewise", "duchi", "hybrid");

    private static final BigInteger WIDE = BigInteger.ONE.shiftLeft(20); // numbers are rounded to multiples of 2^-20
    private static final BigInteger COIN = BigInteger.ONE.shiftLeft(30);
    private static final BigInteger MIXTURE = BigInteger.ONE.shiftLeft(32);
    private static final int BASE = 256;
    private static final Map<List<Object>, BigInteger[]> EDGES = new HashMap<>();

    private Boxes() {}

    static double[] report(String mechanism, double epsilon, double[] vector, Draws.Words words) {
        double[] inside = Arrays.stream(vector).map(x -> Math.min(Math.max(x, -1), 1)).toArray();
        if (mechanism.equals("laplace")) return laplace(epsilon, inside, words);
        BigInteger[] places = Arrays.stream(inside).mapToObj(x -> integer(x * WIDE.doubleValue())).toArray(BigInteger[]::new);
        return mechanism.equals("duchi") ? duchi(epsilon, places, words) : sampled(mechanism, epsilon, places, words);
    }

    // -- Laplace ----------------------------------------------------------------------------------

    private static double[] laplace(double epsilon, double[] vector, Draws.Words words) {
        int d = vector.length;
        double step = Math.min(Math.scalb(1.0, Math.getExponent(2 * d / epsilon) - 20), 1); // 2^(e - 1) ≤ 2d/ε < 2^e
        BigDecimal[] whole = new BigDecimal(2 * d).divideAndRemainder(new BigDecimal(epsilon).multiply(new BigDecimal(step)));
        BigInteger scale = whole[0].toBigIntegerExact().add(BigInteger.valueOf(whole[1].signum())); // rounded up
        BigInteger[] noise = discreteLaplace(d, scale, words);
        return IntStream.range(0, d).mapToDouble(k -> integer(vector[k] / step).add(noise[k]).doubleValue() * step).toArray();
    }

    /** Whole numbers with P(k) ∝ e^(-|k|/scale). */
    private static BigInteger[] discreteLaplace(int size, BigInteger scale, Draws.Words words) {
        BigInteger[] found = geometric(size, scale, words);
        double[] signs = Draws.signs(size, words);
        for (int k = 0; k < size; k++) if (signs[k] < 0) found[k] = found[k].negate();
        int[] zeros = IntStream.range(0, size).filter(k -> found[k].signum() == 0).toArray();
        double[] coins = Draws.signs(zeros.length, words); // 0 has both signs: one of them is drawn anew
        int[] again = IntStream.range(0, zeros.length).filter(k -> coins[k] < 0).map(k -> zeros[k]).toArray();
        if (again.length == 0) return found;
        BigInteger[] anew = discreteLaplace(again.length, scale, words);
        for (int k = 0; k < again.length; k++) found[again[k]] = anew[k];
        return found;
    }

    private static BigInteger[] geometric(int size, BigInteger scale, Draws.Words words) {
        BigInteger[] total = new BigInteger[size];
        Arrays.fill(total, BigInteger.ZERO);
        BigInteger step = BigInteger.ONE;
        for (BigInteger next; (next = step.shiftLeft(8)).compareTo(scale) <= 0; step = next) add(total, step, digits(size, step, scale, true, words));
        add(total, step, unbounded(size, step, scale, words));
        return total;
    }

    private static void add(BigInteger[] total, BigInteger step, int[] digits) {
        for (int k = 0; k < total.length; k++) total[k] = total[k].add(step.multiply(BigInteger.valueOf(digits[k])));
    }

    private static int[] unbounded(int size, BigInteger step, BigInteger scale, Draws.Words words) {
        int[] found = digits(size, step, scale, false, words);
        int[] beyond = IntStream.range(0, size).filter(k -> found[k] == BASE).toArray();
        if (beyond.length == 0) return found;
        int[] more = unbounded(beyond.length, step, scale, words);
        for (int k = 0; k < beyond.length; k++) found[beyond[k]] += more[k];
        return found;
    }

    /** How many of the probabilities are at most each of several uniform numbers. */
    private static int[] digits(int size, BigInteger step, BigInteger scale, boolean closed, Draws.Words words) {
        BigInteger[] drawn = Draws.words(size, words);
        return Arrays.stream(drawn).mapToInt(word -> {
            BigInteger uniform = word;
            for (int bits = 64; ; bits += 64) {
                BigInteger[] edges = edges(step, scale, closed, bits);
                int place = Arrays.binarySearch(edges, uniform);
                if (place < 0) return -place - 1;
                uniform = uniform.shiftLeft(64).or(Draws.words(1, words)[0]); // the first digits are equal
            }
        }).toArray();
    }

    /** ⌊P(digit < m) · 2^bits⌋ for m = 1, 2, … */
    private static BigInteger[] edges(BigInteger step, BigInteger scale, boolean closed, int bits) {
        return EDGES.computeIfAbsent(List.of(step, scale, closed, bits), key -> {
            MathContext precise = new MathContext(bits / 3 + 80);
            BigDecimal ratio = BigDecimal.ONE.divide(Draws.exp(new BigDecimal(step).divide(new BigDecimal(scale), precise), precise), precise);
            BigDecimal total = closed ? BigDecimal.ONE.subtract(ratio.pow(BASE, precise)) : BigDecimal.ONE;
            BigDecimal unit = new BigDecimal(BigInteger.ONE.shiftLeft(bits));
            return IntStream.range(1, closed ? BASE : BASE + 1)
                .mapToObj(m -> Draws.floor(BigDecimal.ONE.subtract(ratio.pow(m, precise)).multiply(unit).divide(total, precise)))
                .toArray(BigInteger[]::new);
        });
    }

    // -- piecewise, Duchi and hybrid --------------------------------------------------------------

    private static double[] sampled(String mechanism, double epsilon, BigInteger[] places, Draws.Words words) {
        int d = places.length;
        int k = Math.max(1, Math.min(d, (int) Math.min(Math.floor(epsilon / 2.5), d)));
        if (k == d) return draws(mechanism, epsilon / k, places, words);
        int[] chosen = Draws.subset(k, d, words);
        double[] reports = draws(mechanism, epsilon / k, Arrays.stream(chosen).mapToObj(j -> places[j]).toArray(BigInteger[]::new), words);
        double[] report = new double[d];
        for (int m = 0; m < k; m++) report[chosen[m]] = (double) d / k * reports[m];
        return report;
    }

    private static double[] draws(String mechanism, double epsilon, BigInteger[] places, Draws.Words words) {
        return mechanism.equals("piecewise") ? piecewise(epsilon, places, words) : hybrid(epsilon, places, words);
    }

    private static double[] piecewise(double epsilon, BigInteger[] places, Draws.Words words) {
        BigInteger half = Draws.faded(epsilon / 2, WIDE).max(BigInteger.ONE);
        BigInteger window = half.shiftLeft(1);
        BigInteger[] weights = Draws.weights(epsilon, window, WIDE.shiftLeft(1), 62);
        BigInteger likely = window.multiply(weights[0]);
        BigInteger total = likely.add(WIDE.shiftLeft(1).multiply(weights[1]));
        double unit = nearest(total, weights[0].subtract(weights[1]).multiply(window).multiply(WIDE));
        BigInteger[] coins = Draws.below(total, places.length, words);
        return IntStream.range(0, places.length).mapToDouble(k -> {
            BigInteger start = places[k].subtract(half);
            if (coins[k].compareTo(likely) < 0) return (start.add(coins[k].divide(weights[0])).doubleValue() + 0.5) * unit;
            BigInteger outside = coins[k].subtract(likely).divide(weights[1]).subtract(WIDE).subtract(half);
            return ((outside.compareTo(start) >= 0 ? outside.add(window) : outside).doubleValue() + 0.5) * unit;
        }).toArray();
    }

    private static double[] oneByOne(double epsilon, BigInteger[] places, Draws.Words words) {
        BigInteger high = Draws.odds(epsilon, COIN);
        double bound = nearest(high.add(COIN), high.subtract(COIN));
        double[] corners = corners(places, words);
        BigInteger[] coins = Draws.below(high.add(COIN), places.length, words);
        return IntStream.range(0, places.length).mapToDouble(k -> bound * (coins[k].compareTo(high) < 0 ? corners[k] : -corners[k])).toArray();
    }

    private static double[] hybrid(double epsilon, BigInteger[] places, Draws.Words words) {
        BigInteger share = epsilon <= 0.61 ? BigInteger.ZERO : MIXTURE.subtract(Draws.faded(epsilon / 2, MIXTURE));
        BigInteger[] coins = Draws.below(MIXTURE, places.length, words);
        int[] first = IntStream.range(0, places.length).filter(k -> coins[k].compareTo(share) < 0).toArray();
        int[] second = IntStream.range(0, places.length).filter(k -> coins[k].compareTo(share) >= 0).toArray();
        double[] report = new double[places.length];
        double[] some = piecewise(epsilon, Arrays.stream(first).mapToObj(k -> places[k]).toArray(BigInteger[]::new), words);
        double[] others = oneByOne(epsilon, Arrays.stream(second).mapToObj(k -> places[k]).toArray(BigInteger[]::new), words);
        for (int k = 0; k < first.length; k++) report[first[k]] = some[k];
        for (int k = 0; k < second.length; k++) report[second[k]] = others[k];
        return report;
    }

    private static double[] duchi(double epsilon, BigInteger[] places, Draws.Words words) {
        int d = places.length;
        BigInteger high = Draws.odds(epsilon, COIN);
        BigInteger ties = d % 2 == 0 ? choose(d, d / 2) : BigInteger.ZERO;
        BigInteger total = BigInteger.ONE.shiftLeft(d).subtract(ties).shiftRight(1).multiply(high.add(COIN)).add(ties.multiply(COIN));
        double bound = nearest(total, high.subtract(COIN).multiply(choose(d - 1, d / 2)));
        double[] corner = corners(places, words);
        while (true) {
            double[] proposal = Draws.signs(d, words);
            BigInteger coin = Draws.below(high, words);
            boolean agrees = IntStream.range(0, d).mapToDouble(j -> proposal[j] * corner[j]).sum() > 0;
            if (agrees || coin.compareTo(COIN) < 0) return Arrays.stream(proposal).map(sign -> bound * sign).toArray();
        }
    }

    /** +1 or -1 with the mean of each number. */
    private static double[] corners(BigInteger[] places, Draws.Words words) {
        BigInteger[] coins = Draws.below(WIDE.shiftLeft(1), places.length, words);
        return IntStream.range(0, places.length).mapToDouble(k -> coins[k].compareTo(places[k].add(WIDE)) < 0 ? 1 : -1).toArray();
    }

    private static BigInteger choose(int n, int k) {
        BigInteger found = BigInteger.ONE;
        for (int j = 1; j <= k; j++) found = found.multiply(BigInteger.valueOf(n - k + j)).divide(BigInteger.valueOf(j));
        return found;
    }

    /** The nearest whole number, halves to even. */
    private static BigInteger integer(double value) {
        return new BigDecimal(Math.rint(value)).toBigIntegerExact();
    }

    /** The double nearest to a fraction. */
    private static double nearest(BigInteger top, BigInteger bottom) {
        return new BigDecimal(top).divide(new BigDecimal(bottom), new MathContext(60)).doubleValue();
    }
}
