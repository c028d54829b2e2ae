import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import java.security.SecureRandom;

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
        BigInteger last = WORD.subtract(BigInteger.ONE).subtract(WORD.mod(bound));
        BigInteger word = unsigned(words.next());
        while (word.compareTo(last) > 0) word = unsigned(words.next());
        return word.mod(bound);
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
        BigDecimal small = new BigDecimal(Math.min(epsilon, 22)).divide(BigDecimal.valueOf(1L << HALVINGS), DIGITS);
        BigDecimal term = BigDecimal.ONE;
        BigDecimal power = BigDecimal.ONE;
        for (int k = 1; term.signum() > 0 && term.precision() - term.scale() > -DIGITS.getPrecision(); k++) {
            term = term.multiply(small, DIGITS).divide(BigDecimal.valueOf(k), DIGITS);
            power = power.add(term, DIGITS);
        }
        for (int k = 0; k < HALVINGS; k++) power = power.multiply(power, DIGITS);
        BigInteger found = power.multiply(new BigDecimal(denominator)).setScale(0, RoundingMode.FLOOR).toBigInteger();
        return found.max(denominator);
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
