import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.IntStream;

/** How many codewords and buckets a report has, and how many codewords are likely: public numbers. */
final class Sizes {
    private static final int NODES = 200;
    private static final double ENOUGH = 0.98; // of the information of infinitely many codewords
    private static final int LARGEST = 1 << 17; // of codewords times dimension
    private static final Map<String, double[][]> KEPT = new HashMap<>();

    private Sizes() {}

    /** s, the number of likely codewords with the largest gain. */
    static int cap(int codewords, int dimension, double given, int buckets) {
        double epsilon = Math.min(given, 22);
        int half = codewords / 2;
        int cap = (int) Math.min(Math.max(Math.rint(limit(dimension, epsilon, buckets)[0] * codewords), 1), half);
        while (cap < half && gain(codewords, dimension, epsilon, cap + 1, buckets) > gain(codewords, dimension, epsilon, cap, buckets)) cap++;
        while (cap > 1 && gain(codewords, dimension, epsilon, cap - 1, buckets) >= gain(codewords, dimension, epsilon, cap, buckets)) cap--;
        return cap;
    }

    /** B, the smallest power of two that is nearly as good as infinitely many codewords. */
    static int codewords(int dimension, double given, int buckets) {
        double epsilon = Math.min(given, 22);
        double enough = Math.sqrt(ENOUGH) * limit(dimension, epsilon, buckets)[1];
        int size = 16;
        while (size < 4096 && 2 * size * dimension <= LARGEST
            && gain(size, dimension, epsilon, cap(size, dimension, epsilon, buckets), buckets) < enough) size *= 2;
        return size;
    }

    /** L, the number of buckets with the least noise on the mean of a class. */
    static int buckets(int dimension, double given, int classes) {
        double epsilon = Math.min(given, 22);
        TreeSet<Integer> tried = new TreeSet<>();
        for (int power = 1; power <= classes; power *= 2) {
            tried.add(power);
            tried.add(Math.min(power + power / 2, classes));
        }
        tried.add(classes);
        int best = 0;
        double found = -1;
        for (int buckets : tried) {
            double worth = buckets * Math.pow(limit(dimension, epsilon, buckets)[1], 2);
            if (worth > found) {
                found = worth;
                best = buckets;
            }
        }
        return best;
    }

    /** The mean of a sent codeword along the private direction. */
    private static double gain(int codewords, int dimension, double epsilon, int cap, int buckets) {
        double more = Math.expm1(epsilon);
        return capSum(dimension, codewords / 2, cap) * more / (cap * more + (double) buckets * codewords);
    }

    /** Of infinitely many codewords: the share in the best cap, and its gain. */
    private static double[] limit(int dimension, double epsilon, int buckets) {
        double more = Math.expm1(epsilon);
        double[][] caps = KEPT.computeIfAbsent("caps " + dimension, key -> caps(dimension));
        double[] best = {0, -1};
        for (int k = 0; k < caps[0].length; k++) {
            double gain = caps[1][k] * more / (caps[0][k] * more + buckets);
            if (gain > best[1]) best = new double[] {caps[0][k], gain};
        }
        return best;
    }

    private static double[][] caps(int dimension) {
        if (dimension == 1) return new double[][] {{0.5}, {0.5}};
        double half = (dimension - 1) / 2.0;
        double[] sines = angles(8 * NODES)[0];
        double scale = Math.sqrt(dimension) / (2 * half);
        return new double[][] {
            Arrays.stream(sines).map(sine -> beta(half, 0.5, sine * sine) / 2).toArray(),
            Arrays.stream(sines).map(sine -> Math.exp(2 * half * Math.log(sine) - logBeta(0.5, half)) * scale).toArray(),
        };
    }

    /** The expected sum of the s largest of B/2 sizes of projections. */
    private static double capSum(int dimension, int half, int cap) {
        if (dimension == 1) return cap;
        int nodes = NODES + 16 * (int) Math.sqrt(half);
        double[][] known = KEPT.computeIfAbsent("nodes " + dimension + " " + nodes, key -> {
            double[][] angles = angles(nodes);
            double other = (dimension - 1) / 2.0, constant = logBeta(0.5, other);
            return new double[][] {
                Arrays.stream(angles[0]).map(sine -> beta(other, 0.5, sine * sine)).toArray(),
                IntStream.range(0, nodes).mapToDouble(k -> 2 * Math.sqrt(dimension) * angles[1][k]
                    * Math.exp((dimension - 2) * Math.log(angles[0][k]) - constant) * angles[2][k]).toArray(),
            };
        });
        double sum = 0;
        for (int k = 0; k < nodes; k++) sum += (cap < half ? 1 - beta(cap, half - cap, known[0][k]) : 1) * known[1][k];
        return sum * half;
    }

    /** Sines, cosines and weights of a double exponential rule on [0, π/2]. */
    private static double[][] angles(int nodes) {
        double[][] found = new double[3][nodes];
        double gap = 6.0 / (nodes - 1);
        for (int k = 0; k < nodes; k++) {
            double x = -3 + k * gap, y = Math.PI / 2 * Math.sinh(x);
            found[0][k] = Math.sin(Math.PI / 2 / (1 + Math.exp(-2 * y)));
            found[1][k] = Math.sin(Math.PI / 2 / (1 + Math.exp(2 * y)));
            found[2][k] = gap * Math.pow(Math.PI / 2, 2) * Math.cosh(x) / (2 * Math.pow(Math.cosh(y), 2));
        }
        return found;
    }

    // -- special functions ------------------------------------------------------------------------

    private static final double[] LANCZOS = {
        0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
        12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
    };

    private static double logGamma(double x) {
        if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
        double t = x + 6.5, sum = LANCZOS[0];
        for (int k = 1; k < LANCZOS.length; k++) sum += LANCZOS[k] / (x - 1 + k);
        return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
    }

    private static double logBeta(double a, double b) {
        return logGamma(a) + logGamma(b) - logGamma(a + b);
    }

    /** The regularized incomplete beta function I_x(a, b), by its continued fraction. */
    private static double beta(double a, double b, double x) {
        if (x <= 0) return 0;
        if (x >= 1) return 1;
        if (x > (a + 1) / (a + b + 2)) return 1 - beta(b, a, 1 - x);
        double front = Math.exp(a * Math.log(x) + b * Math.log1p(-x) - logBeta(a, b)) / a;
        double c = 1, d = 1 / apart(1 - (a + b) * x / (a + 1)), found = d;
        for (int m = 1; m < 1000; m++) {
            double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
            for (double numerator : new double[] {even, odd}) {
                d = 1 / apart(1 + numerator * d);
                c = apart(1 + numerator / c);
                found *= c * d;
            }
            if (Math.abs(c * d - 1) < 1e-15) break;
        }
        return front * found;
    }

    private static double apart(double value) {
        return Math.abs(value) < 1e-300 ? 1e-300 : value;
    }
}
