import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;

/** Replays the test vectors of the repository: java Replay FOLDER. Prints how many of each passed. */
final class Replay {
    private static final List<String> MECHANISMS = List.of("randomized_response", "question_response");

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
        for (Object one : Json.object(read(folder, "plans")).values()) count += hashed(Json.object(one));
        System.out.println("plans " + count);

        count = 0;
        for (Object one : Json.list(read(folder, "refused_plans"))) count += hashed(Json.object(one));
        System.out.println("refused plans, by their hashes " + count);

        count = 0;
        for (Object one : Json.list(read(folder, "mechanisms"))) {
            Map<String, Object> known = Json.object(one);
            Map<String, Object> mechanism = Json.object(known.get("mechanism"));
            if (!MECHANISMS.contains(mechanism.get("name"))) continue;
            double epsilon = Json.number(mechanism.get("epsilon"));
            for (Object draw : Json.list(known.get("draws"))) {
                Map<String, Object> case_ = Json.object(draw);
                double[] value = Json.numbers(case_.get("value"));
                Words words = new Words(case_);
                double[] report = mechanism.get("name").equals("randomized_response")
                    ? new double[] {Draws.randomizedResponse(epsilon, value[0], words)}
                    : Draws.questionResponse(epsilon, value, words);
                check(words.left.isEmpty() && Arrays.equals(report, Json.numbers(case_.get("report"))), mechanism);
                count++;
            }
        }
        System.out.println("draws of " + String.join(" and ", MECHANISMS) + " " + count);

        count = 0;
        for (Object one : Json.list(read(folder, "tasks"))) {
            Map<String, Object> known = Json.object(one);
            Map<String, Object> task = Json.object(known.get("task"));
            if (!Tasks.knows((String) task.get("name"))) continue;
            double[] features = Json.list(known.get("features")).stream()
                .mapToDouble(x -> x instanceof Double number ? number : Double.parseDouble((String) x)).toArray();
            Words words = new Words(known);
            double[] values = Tasks.answer(task, features, (int) Json.number(known.get("label")), words);
            check(words.left.isEmpty() && Arrays.equals(values, Json.numbers(known.get("values"))), task.get("name"));
            count++;
        }
        System.out.println("tasks of yes/no questions " + count);
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
