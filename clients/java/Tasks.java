import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** What each task computes of a person's features and label, and the reply. */
final class Tasks {
    private Tasks() {}

    /** The values of a reply: whatever is true, it goes through a mechanism. */
    static double[] answer(Map<String, Object> task, double[] features, int label, Draws.Words words) {
        double epsilon = Json.number(task.get("epsilon"));
        double[] inside = Arrays.stream(features).map(x -> Double.isNaN(x) ? 0 : clamp(x)).toArray();
        double[] z = task.containsKey("folds") ? folded(inside, Json.numbers(task.get("folds"))) : inside;
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
                double each = roundedDown(decimal(epsilon), BigDecimal.valueOf(found.length));
                return IntStream.range(0, found.length).mapToDouble(m -> {
                    boolean positive = Arrays.stream(Json.numbers(part(task, "positive", m))).anyMatch(one -> one == label);
                    return Draws.randomizedResponse(each, sign(found[m] >= 0 == positive), words);
                }).toArray();
            }
            case "moment": {
                double y = sign(label == first(task.get("positive")));
                double[] vector = Arrays.stream(features(task, z)).map(x -> y * x).toArray();
                return Boxes.report((String) task.get("mechanism_name"), epsilon, vector, words);
            }
            case "vector":
                return curveAndLabel(task, features(task, z), label, words);
            case "summary":
                return summary(task, z, label, words);
            default:
                throw new Refused("kind", "this client knows no such task");
        }
    }

    /** A vector and a sign, each with its part of ε; one of them unchanged if the plan does not protect it. */
    private static double[] curveAndLabel(Map<String, Object> task, double[] curve, int label, Draws.Words words) {
        BigDecimal epsilon = decimal(Json.number(task.get("epsilon")));
        boolean even = task.get("label_share") == null;
        BigDecimal whole = even ? BigDecimal.valueOf(curve.length + 1) : BigDecimal.ONE;
        BigDecimal part = even ? BigDecimal.ONE : decimal(Json.number(task.get("label_share")));
        boolean both = "both".equals(task.get("protects"));
        double forCurve = both ? roundedDown(epsilon.multiply(whole.subtract(part)), whole) : epsilon.doubleValue();
        double forLabel = both ? roundedDown(epsilon.multiply(part), whole) : epsilon.doubleValue();
        double y = sign(Arrays.stream(Json.numbers(task.get("positive"))).anyMatch(one -> one == label));
        double[] sent = "labels".equals(task.get("protects")) ? curve : Boxes.report((String) task.get("mechanism_name"), forCurve, curve, words);
        double[] values = Arrays.copyOf(sent, curve.length + 1);
        values[curve.length] = "features".equals(task.get("protects")) ? y : Draws.randomizedResponse(forLabel, y, words);
        return values;
    }

    /** A statistic of the features and the label, of bounded length, as a codeword near it. */
    private static double[] summary(Map<String, Object> task, double[] z, int given, Draws.Words words) {
        int classes = (int) Json.number(task.get("classes"));
        int label = Math.min(Math.max(given, 0), classes - 1);
        double epsilon = Json.number(task.get("epsilon"));
        double limit = Json.number(task.get("limit"));
        double[] psi = transformed(task, z, label);
        double[] vector = switch ((String) task.get("statistic")) {
            case "spread" -> cut(joined(psi, Arrays.stream(psi).map(x -> x * x - 1).toArray()), limit);
            case "products" -> products(cut(psi, limit));
            case "cross" -> {
                double[] others = reached(task, joined(one(1), Arrays.copyOfRange(psi, 1, psi.length)));
                yield cut(Arrays.stream(others).map(x -> psi[0] * x).toArray(), limit);
            }
            case "residual" -> cut(residual(task, joined(one(1), psi), label, given), limit);
            default -> cut(weighted(task, joined(one(1), psi)), limit);
        };
        int d = vector.length;
        if (!task.get("statistic").equals("classes")) return Codewords.capIndex(epsilon, Sizes.codewords(d, epsilon, 1), vector, words);
        int buckets = Sizes.buckets(d, epsilon, classes);
        return Codewords.classIndex(epsilon, Sizes.codewords(d, epsilon, buckets), buckets, classes, label, vector, words);
    }

    /** ψ: the scaled and clipped features, times a matrix, plus an offset. */
    private static double[] transformed(Map<String, Object> task, double[] z, int label) {
        double[] centers = Json.numbers(task.get("centers")), scales = Json.numbers(task.get("scales"));
        double clip = Json.number(task.get("clip"));
        double[] inside = IntStream.range(0, centers.length)
            .mapToDouble(j -> Math.min(Math.max((z[j] - centers[j]) / scales[j], -clip), clip)).toArray();
        List<Object> offsets = Json.list(task.get("offsets")), matrix = Json.list(task.get("matrix"));
        double[] own = Json.numbers(offsets.get(offsets.size() > 1 ? label : 0));
        return IntStream.range(0, own.length).mapToDouble(k -> dot(Json.numbers(matrix.get(k)), inside) + own[k]).toArray();
    }

    private static double[] products(double[] psi) {
        return IntStream.range(0, psi.length).boxed().flatMapToDouble(i -> IntStream.range(i, psi.length)
            .mapToDouble(j -> psi[i] * psi[j] * (j > i ? Math.sqrt(2) : 1))).toArray();
    }

    /** Label minus probability, of each class, times the weighted features. */
    private static double[] residual(Map<String, Object> task, double[] features, int label, int given) {
        double[] scores = Json.list(task.get("theta")).stream().mapToDouble(row -> dot(features, Json.numbers(row))).toArray();
        double[] residuals = scores.length == 1
            ? one((given == 1 ? 1 : 0) - 1 / (1 + Math.exp(-scores[0])))
            : IntStream.range(0, scores.length).mapToDouble(k -> (k == label ? 1 : 0) - softmax(scores)[k]).toArray();
        double[] inside = reached(task, features);
        return Arrays.stream(residuals).flatMap(one -> Arrays.stream(inside).map(x -> one * x)).toArray();
    }

    private static double[] reached(Map<String, Object> task, double[] vector) {
        double reach = Json.number(task.get("reach"));
        return Arrays.stream(cut(weighted(task, vector), reach)).map(x -> x * reach).toArray();
    }

    private static double[] weighted(Map<String, Object> task, double[] vector) {
        double[] weights = Json.numbers(task.get("weights"));
        return IntStream.range(0, vector.length).mapToDouble(k -> vector[k] * weights[k]).toArray();
    }

    /** In units of a limit, and shortened to 1 if it is longer. */
    private static double[] cut(double[] vector, double limit) {
        double length = Math.max(Math.sqrt(dot(vector, vector)), limit);
        return Arrays.stream(vector).map(x -> x / length).toArray();
    }

    private static double[] joined(double[] first, double[] second) {
        double[] found = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, found, first.length, second.length);
        return found;
    }

    private static double[] features(Map<String, Object> task, double[] z) {
        return Arrays.copyOf(z, (int) Json.number(task.get("dimension")));
    }

    private static BigDecimal decimal(double value) {
        return new BigDecimal(Json.text(value)); // as people write it: 0.1 is one tenth
    }

    /** The largest double whose decimal text is not above a fraction. */
    private static double roundedDown(BigDecimal top, BigDecimal bottom) {
        double found = top.divide(bottom, new MathContext(60)).doubleValue();
        return decimal(found).multiply(bottom).compareTo(top) <= 0 ? found : Math.nextDown(found);
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
        return softmax(moderated);
    }

    private static double[] softmax(double[] scores) {
        double most = Arrays.stream(scores).max().orElseThrow();
        double[] powers = Arrays.stream(scores).map(score -> Math.exp(score - most)).toArray();
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
