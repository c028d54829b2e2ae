import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Comparator;
import java.util.stream.IntStream;

/** Exact draws from 64-bit words, and the two mechanisms for answers to yes/no questions. */
final class Draws {
    /** A stream of independent uniform 64-bit words. */
    interface Words {
        long next();
    }

    /** Words of the device's own cryptographic generator. */
    static final Words SECURE = new SecureRandom()::nextLong;

    private static final MathContext DIGITS = new MathContext(120); // e^22 · 2^64 has thirty before the point
    private static final BigInteger COIN = BigInteger.ONE.shiftLeft(30);
    private static final BigInteger WORD = BigInteger.ONE.shiftLeft(64);
    private static final int HALVINGS = 16;

    private Draws() {}

    /** Warner's randomized response: a sign, true with odds e^ε. */
    static double randomizedResponse(double epsilon, double sign, Words words) {
        BigInteger keep = odds(epsilon, COIN);
        return below(keep.add(COIN), words).compareTo(keep) < 0 ? sign : -sign;
    }

    /** Several signs at once: all true, or all random. */
    static double[] questionResponse(double epsilon, double[] answers, Words words) {
        BigInteger patterns = BigInteger.ONE.shiftLeft(answers.length);
        BigInteger[] weights = weights(epsilon, BigInteger.ONE, patterns, 61);
        BigInteger truthful = weights[0].subtract(weights[1]);
        BigInteger coin = below(truthful.add(patterns.multiply(weights[1])), words);
        double[] random = signs(answers.length, words); // drawn in any case
        return coin.compareTo(truthful) < 0 ? answers : random;
    }

    /** An integer, uniform on {0, …, bound - 1}. */
    static BigInteger below(BigInteger bound, Words words) {
        return below(bound, 1, words)[0];
    }

    /** Several of them: all words are taken first, then those that were rejected are replaced. */
    static BigInteger[] below(BigInteger bound, int size, Words words) {
        BigInteger last = WORD.subtract(BigInteger.ONE).subtract(WORD.mod(bound));
        BigInteger[] found = words(size, words);
        while (true) {
            int[] rejected = IntStream.range(0, size).filter(k -> found[k].compareTo(last) > 0).toArray();
            if (rejected.length == 0) break;
            for (int k : rejected) found[k] = unsigned(words.next());
        }
        return Arrays.stream(found).map(word -> word.mod(bound)).toArray(BigInteger[]::new);
    }

    /** As many words, as whole numbers. */
    static BigInteger[] words(int size, Words words) {
        BigInteger[] found = new BigInteger[size];
        for (int k = 0; k < size; k++) found[k] = unsigned(words.next());
        return found;
    }

    /** `choose` of `among` places, in random order. */
    static int[] subset(int choose, int among, Words words) {
        while (true) {
            BigInteger[] keys = words(among, words);
            if (Arrays.stream(keys).distinct().count() < among) continue;
            return IntStream.range(0, among).boxed().sorted(Comparator.comparing(k -> keys[k]))
                .limit(choose).mapToInt(Integer::intValue).toArray();
        }
    }

    /** Fair signs, 64 from each word: bytes from the lowest, bits of each from the highest. */
    static double[] signs(int size, Words words) {
        double[] found = new double[size];
        long word = 0;
        for (int k = 0; k < size; k++) {
            if (k % 64 == 0) word = words.next();
            long octet = (word >>> (8 * (k / 8 % 8))) & 255;
            found[k] = (octet >>> (7 - k % 8) & 1) == 1 ? 1 : -1;
        }
        return found;
    }

    /** ⌊denominator · e^ε⌋, and not below the denominator; an ε above 22 counts as 22. */
    static BigInteger odds(double epsilon, BigInteger denominator) {
        return floor(exp(new BigDecimal(Math.min(epsilon, 22)), DIGITS).multiply(new BigDecimal(denominator))).max(denominator);
    }

    /** ⌊of · e^-x⌋ for x ≥ 0. */
    static BigInteger faded(double x, BigInteger of) {
        if (x == 0) return of;
        return x > 64 ? BigInteger.ZERO : floor(new BigDecimal(of).divide(exp(new BigDecimal(x), DIGITS), DIGITS));
    }

    /** e^x for x ≥ 0, to nearly as many digits. */
    static BigDecimal exp(BigDecimal x, MathContext digits) {
        BigDecimal small = x.divide(BigDecimal.valueOf(1L << HALVINGS), digits);
        BigDecimal term = BigDecimal.ONE;
        BigDecimal power = BigDecimal.ONE;
        for (int k = 1; term.signum() > 0 && term.precision() - term.scale() > -digits.getPrecision(); k++) {
            term = term.multiply(small, digits).divide(BigDecimal.valueOf(k), digits);
            power = power.add(term, digits);
        }
        for (int k = 0; k < HALVINGS; k++) power = power.multiply(power, digits);
        return power;
    }

    static BigInteger floor(BigDecimal value) {
        return value.setScale(0, RoundingMode.FLOOR).toBigInteger();
    }

    /** Weights (high, low) of likely and other outcomes, as fine as sums up to 2^bits allow. */
    static BigInteger[] weights(double epsilon, BigInteger likely, BigInteger others, int bits) {
        BigInteger total = likely.multiply(odds(epsilon, WORD)).add(others.shiftLeft(64));
        BigInteger low = BigInteger.ONE.shiftLeft(bits + 64 - total.subtract(BigInteger.ONE).bitLength());
        return new BigInteger[] {odds(epsilon, low), low};
    }

    private static BigInteger unsigned(long word) {
        return new BigInteger(Long.toUnsignedString(word));
    }
}
