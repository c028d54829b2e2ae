import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Map;
import java.util.TreeMap;

/** Replays the test vectors of the repository: java Replay FOLDER. Prints how many of each passed. */
final class Replay {
    public static void main(String[] arguments) throws IOException {
        Path folder = Path.of(arguments[0]);
        int count = 0;
        for (Object one : Json.list(read(folder, "numbers"))) {
            Map<String, Object> known = Json.object(one);
            double value = Double.longBitsToDouble(Long.parseUnsignedLong((String) known.get("bits"), 16));
            check(Json.text(value).equals(known.get("text")), known.get("bits"));
            count++;
        }
        System.out.println("numbers " + count);

        count = 0;
        Map<String, Object> plans = Json.object(read(folder, "plans"));
        for (Object one : plans.values()) {
            count += hashed(Json.object(one));
            Plans.read(Json.object(one).get("plan"));
        }
        System.out.println("plans " + count);

        count = 0;
        for (Object one : Json.list(read(folder, "refused_plans"))) {
            count += hashed(Json.object(one));
            check(refused(() -> Plans.read(Json.object(one).get("plan"))).equals("plan"), Json.object(one).get("what"));
        }
        System.out.println("refused plans " + count);

        count = 0;
        for (Object one : Json.list(read(folder, "mechanisms"))) {
            Map<String, Object> known = Json.object(one);
            Map<String, Object> mechanism = Json.object(known.get("mechanism"));
            for (Object draw : Json.list(known.get("draws"))) {
                Map<String, Object> expected = Json.object(draw);
                Words words = new Words(expected);
                double[] report = report(mechanism, Json.numbers(expected.get("value")), words);
                check(words.left.isEmpty() && same(report, Json.numbers(expected.get("report"))), mechanism);
                count++;
            }
        }
        System.out.println("mechanisms " + count);

        count = 0;
        for (Object one : Json.list(read(folder, "tasks"))) {
            Map<String, Object> known = Json.object(one);
            Map<String, Object> task = Designs.complete(Json.object(known.get("task")));
            Words words = new Words(known);
            double[] values = Tasks.answer(task, told(known.get("features")), (int) Json.number(known.get("label")), words);
            check(words.left.isEmpty() && same(values, Json.numbers(known.get("values"))), task.get("name"));
            count++;
        }
        System.out.println("tasks " + count);

        count = 0;
        Map<String, Object> encoders = Json.object(read(folder, "encoder"));
        double tolerance = Json.number(encoders.get("tolerance"));
        for (Object one : Json.list(encoders.get("cases"))) {
            Map<String, Object> known = Json.object(one);
            Map<String, Object> encoder = Json.object(known.get("encoder"));
            for (Object curve : Json.list(known.get("curves"))) {
                Map<String, Object> expected = Json.object(curve);
                double[] points = expected.get("points") == null ? null : told(expected.get("points"));
                double[] found = Curves.encode(encoder, points, Json.list(expected.get("values")));
                double[] features = Json.numbers(expected.get("features"));
                check(found.length == features.length, encoder);
                for (int k = 0; k < found.length; k++) check(Math.abs(found[k] - features[k]) <= tolerance, encoder);
                count++;
            }
        }
        System.out.println("curves " + count);

        count = 0;
        for (Object one : Json.list(Json.object(read(folder, "refused")).get("cases"))) {
            Map<String, Object> known = Json.object(one);
            Map<String, Object> plan = Json.object(Json.object(plans.get(known.get("plan"))).get("plan"));
            Map<String, Object> task = Json.object(known.get("task"));
            Designs.readTask(plan, task);
            for (Object other : Json.list(known.get("others"))) {
                Map<String, Object> variant = Json.object(other);
                Map<String, Object> sent = new TreeMap<>(task);
                sent.putAll(Json.object(variant.get("set")));
                if (variant.get("without") != null) Json.list(variant.get("without")).forEach(sent::remove);
                check(refused(() -> Designs.readTask(plan, sent)).equals(why((String) variant.get("reason"))), known.get("plan") + " " + variant);
                count++;
            }
        }
        System.out.println("refused tasks, and tasks that are not " + count);
    }

    private static double[] report(Map<String, Object> mechanism, double[] value, Draws.Words words) {
        String name = (String) mechanism.get("name");
        double epsilon = Json.number(mechanism.get("epsilon"));
        return switch (name) {
            case "randomized_response" -> new double[] {Draws.randomizedResponse(epsilon, value[0], words)};
            case "question_response" -> Draws.questionResponse(epsilon, value, words);
            case "cap_index" -> Codewords.capIndex(epsilon, whole(mechanism, "codewords"), value, words);
            case "class_index" -> Codewords.classIndex(epsilon, whole(mechanism, "codewords"), whole(mechanism, "buckets"),
                whole(mechanism, "classes"), (int) value[0], Arrays.copyOfRange(value, 1, value.length), words);
            default -> Boxes.report(name, epsilon, value, words);
        };
    }

    private static int whole(Map<String, Object> given, String name) {
        return (int) Json.number(given.get(name));
    }

    /** Numbers, of which NaN and infinity are text. */
    private static double[] told(Object values) {
        return Json.list(values).stream().mapToDouble(Curves::number).toArray();
    }

    /** The same doubles, with one zero. */
    private static boolean same(double[] found, double[] expected) {
        return Arrays.equals(Arrays.stream(found).map(x -> x + 0.0).toArray(), Arrays.stream(expected).map(x -> x + 0.0).toArray());
    }

    /** Why something is refused; "" if it is not. */
    private static String refused(Runnable read) {
        try {
            read.run();
            return "";
        } catch (Refused refused) {
            return refused.why;
        }
    }

    private static String why(String reason) {
        if (reason == null) return "";
        if (reason.contains("no such task")) return "kind";
        return reason.contains("cannot be understood") ? "form" : "terms";
    }

    private static int hashed(Map<String, Object> known) {
        check(Json.hash(known.get("plan")).equals(known.get("hash")), known.get("hash"));
        return 1;
    }

    private static Object read(Path folder, String name) throws IOException {
        return Json.read(Files.readString(folder.resolve(name + ".json")));
    }

    private static void check(boolean holds, Object which) {
        if (!holds) throw new AssertionError(String.valueOf(which));
    }

    /** The words of a vector, which must all be drawn. */
    private static final class Words implements Draws.Words {
        final Deque<Long> left = new ArrayDeque<>();

        Words(Map<String, Object> known) {
            for (Object word : Json.list(known.get("words"))) left.add(Long.parseUnsignedLong((String) word, 16));
        }

        @Override
        public long next() {
            return left.remove(); // throws where the vector holds fewer
        }
    }

    private Replay() {}
}
