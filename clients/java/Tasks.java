import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** The tasks that ask yes/no questions: what is true of a person, and the reply. */
final class Tasks {
    private static final List<String> KNOWN = List.of("stump", "confidence", "evaluation", "member");

    private Tasks() {}

    static boolean knows(String name) {
        return KNOWN.contains(name);
    }

    /** The values of a reply: whatever is true, it goes through a mechanism. */
    static double[] answer(Map<String, Object> task, double[] features, int label, Draws.Words words) {
        double epsilon = Json.number(task.get("epsilon"));
        double[] inside = Arrays.stream(features).map(x -> Double.isNaN(x) ? 0 : clamp(x)).toArray();
        double[] z = folded(inside, Json.numbers(task.get("folds")));
        String name = (String) task.get("name");
        switch (name) {
            case "stump": {
                double y = Boolean.TRUE.equals(task.get("uses_label")) ? sign(label == first(task.get("positive"))) : 1;
                double[] places = row(task, "coordinates");
                double[] thresholds = row(task, "thresholds");
                double[] truth = IntStream.range(0, places.length).mapToDouble(k -> y * sign(z[(int) places[k]] > thresholds[k])).toArray();
                return Draws.questionResponse(epsilon, truth, words);
            }
            case "confidence": {
                double[] chances = chances(task, z);
                double off = (decided(scores(task, z)) == label ? 1 : 0) - Arrays.stream(chances).max().orElseThrow();
                double[] truth = Arrays.stream(row(task, "dithers")).map(dither -> sign(off > dither)).toArray();
                return Draws.questionResponse(epsilon, truth, words);
            }
            case "evaluation":
                return one(Draws.randomizedResponse(epsilon, sign(decided(scores(task, z)) == label), words));
            case "member": {
                double[] found = scores(task, z);
                double each = equalPart(epsilon, found.length);
                return IntStream.range(0, found.length).mapToDouble(m -> {
                    boolean positive = Arrays.stream(Json.numbers(part(task, "positive", m))).anyMatch(one -> one == label);
                    return Draws.randomizedResponse(each, sign(found[m] >= 0 == positive), words);
                }).toArray();
            }
            default:
                throw new Refused("kind", "this client knows no such task");
        }
    }

    /** The largest double whose decimal text is not above that of epsilon over the number. */
    private static double equalPart(double epsilon, int number) {
        BigDecimal whole = new BigDecimal(Json.text(epsilon)), times = BigDecimal.valueOf(number);
        double found = whole.divide(times, new MathContext(60)).doubleValue();
        return new BigDecimal(Json.text(found)).multiply(times).compareTo(whole) <= 0 ? found : Math.nextDown(found);
    }

    private static double[] scores(Map<String, Object> task, double[] z) {
        double[] intercept = row(task, "intercept");
        return IntStream.range(0, intercept.length)
            .mapToDouble(m -> intercept[m] + dot(Json.numbers(part(task, "coefficients", m)), scaled(task, z, m))).toArray();
    }

    private static double[] scaled(Map<String, Object> task, double[] z, int m) {
        double[] centers = Json.numbers(part(task, "centers", m));
        double[] scales = Json.numbers(part(task, "scales", m));
        boolean clipped = Boolean.TRUE.equals(task.get("clipped"));
        return IntStream.range(0, centers.length).mapToDouble(j -> (z[j] - centers[j]) / scales[j])
            .map(x -> clipped ? clamp(x) : x).toArray();
    }

    /** The label number behind scores: the sign of one (0 counts as +), or the first of the largest. */
    private static int decided(double[] scores) {
        if (scores.length == 1) return scores[0] >= 0 ? 1 : 0;
        int best = 0;
        for (int k = 1; k < scores.length; k++) if (scores[k] > scores[best]) best = k;
        return best;
    }

    private static double[] chances(Map<String, Object> task, double[] z) {
        double damping = Json.number(task.get("damping"));
        double[] scores = scores(task, z);
        double doubt = 0;
        for (int m = 0; m < scores.length; m++) {
            double[] open = Json.numbers(part(task, "variances", m));
            double[] squares = Arrays.stream(scaled(task, z, m)).map(x -> x * x).toArray();
            doubt += (open[0] + dot(squares, Arrays.copyOfRange(open, 1, open.length))) / scores.length;
        }
        double shrink = damping / Math.sqrt(1 + Math.PI / 8 * doubt);
        double[] moderated = Arrays.stream(scores).map(score -> score * shrink).toArray();
        if (moderated.length == 1) return new double[] {1 / (1 + Math.exp(moderated[0])), 1 / (1 + Math.exp(-moderated[0]))};
        double most = Arrays.stream(moderated).max().orElseThrow();
        double[] powers = Arrays.stream(moderated).map(score -> Math.exp(score - most)).toArray();
        double total = Arrays.stream(powers).sum();
        return Arrays.stream(powers).map(power -> power / total).toArray();
    }

    /** The first features and their distances from the folds; all features, without folds. */
    private static double[] folded(double[] z, double[] folds) {
        if (folds.length == 0) return z;
        return IntStream.range(0, 2 * folds.length)
            .mapToDouble(j -> j < folds.length ? z[j] : Math.abs(z[j - folds.length] - folds[j - folds.length])).toArray();
    }

    private static double[] row(Map<String, Object> task, String name) {
        return Json.numbers(Json.list(task.get(name)).get(0));
    }

    private static Object part(Map<String, Object> task, String name, int m) {
        return Json.list(Json.list(task.get(name)).get(0)).get(m);
    }

    private static int first(Object numbers) {
        return (int) Json.numbers(numbers)[0];
    }

    private static double dot(double[] a, double[] b) {
        double sum = 0;
        for (int k = 0; k < a.length; k++) sum += a[k] * b[k];
        return sum;
    }

    private static double[] one(double value) {
        return new double[] {value};
    }

    private static double sign(boolean yes) {
        return yes ? 1 : -1;
    }

    private static double clamp(double x) {
        return Math.min(Math.max(x, -1), 1);
    }
}
