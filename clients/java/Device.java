import java.io.IOException;
import java.math.BigDecimal;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * One person's device, for every study that {@link Plans} reads.
 *
 * The order is what protects: the plan is checked against its hash, ε is spent in a file, the reply is drawn and its
 * exact bytes are stored, and only then is anything sent. A retry sends those bytes again.
 *
 * java Device prepare FOLDER URL HASH LIMIT LABEL NUMBER…  prints the bytes that would be sent; the numbers are a row, or
 * a curve at equally spaced points, and LABEL is a number where the study predicts one
 * java Device send|counted|withdraw FOLDER URL HASH
 */
final class Device {
    private static final int ATTEMPTS = 8;
    private static final int TURNS = 120; // half seconds until the study wants somebody

    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(20)).build();
    private final Path folder;
    private final String url;
    private final String hash;

    Device(Path folder, String url, String hash) {
        if (!hash.matches("[0-9a-f]{64}")) throw new Refused("form", "a study is named by 64 hexadecimal digits");
        this.folder = folder;
        this.url = url;
        this.hash = hash;
    }

    public static void main(String[] given) throws Exception {
        Path folder = Files.createDirectories(Path.of(given[1]));
        Device device = new Device(folder, given[2], given[3]);
        try (FileChannel channel = FileChannel.open(folder.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            channel.lock(); // until it is closed no other process of this device works
            switch (given[0]) {
                case "prepare" -> {
                    double[] row = Arrays.stream(given).skip(6).mapToDouble(Double::parseDouble).toArray();
                    System.out.println(device.prepare(Double.parseDouble(given[4]), given[5], row));
                }
                case "send" -> System.out.println(device.send());
                case "counted" -> System.out.println(device.counted());
                case "withdraw" -> device.withdraw();
                default -> throw new IllegalArgumentException(given[0]);
            }
        } catch (Refused refused) {
            System.out.println(refused.getMessage());
            System.exit(3);
        }
    }

    /** Get the task, spend, draw the reply and store it, without sending it. What exists is never drawn again. */
    String prepare(double limit, String label, double[] row) throws IOException, InterruptedException {
        Map<String, Object> letter = letter();
        if (letter.containsKey("body")) return (String) letter.get("body");
        Map<String, Object> plan = plan();
        double epsilon = Json.number(plan.get("epsilon"));
        affordable(limit, epsilon); // before the collector gives one of its places away
        if (!letter.containsKey("token")) {
            letter.put("token", Json.object(ask("POST", "/enrol", null, "")).get("token"));
            keep(hash, letter);
        }
        Map<String, Object> message = message((String) letter.get("token"));
        Map<String, Object> task = Designs.readTask(plan, message.get("task"));
        spend(limit, epsilon);
        List<String> classes = Json.list(plan.get("classes")).stream().map(one -> one instanceof Double x ? Json.text(x) : String.valueOf(one)).toList();
        int number = Math.max(0, classes.indexOf(label)); // refusing would tell
        double[] values = Tasks.answer(task, features(plan, label, row), number, Draws.SECURE);
        byte[] random = new byte[32];
        new SecureRandom().nextBytes(random);
        Map<String, Object> reply = new TreeMap<>(Map.of("plan", hash, "phase", message.get("phase"), "ticket", message.get("ticket")));
        reply.put("values", Arrays.stream(values).boxed().map(Object.class::cast).toList());
        reply.put("nonce", Json.sha256(random).substring(0, 32)); // the secret stays here
        letter.put("secret", HexFormat.of().formatHex(random));
        letter.put("body", Json.canonical(reply));
        keep(hash, letter);
        return (String) letter.get("body");
    }

    /** Send the stored bytes until they are acknowledged. */
    String send() throws IOException, InterruptedException {
        Map<String, Object> letter = prepared();
        if (letter.containsKey("withdrawn")) throw new Refused("terms", "the reply was withdrawn");
        if (letter.containsKey("receipt")) return (String) letter.get("receipt");
        letter.put("tried", true);
        keep(hash, letter);
        letter.put("receipt", Json.object(ask("POST", "/reply", (String) letter.get("token"), (String) letter.get("body"))).get("receipt"));
        keep(hash, letter);
        return (String) letter.get("receipt");
    }

    /** Whether the study has counted the reply; the receipt is all that is shown. */
    Object counted() throws IOException, InterruptedException {
        return Json.object(ask("GET", "/receipts/" + prepared().get("receipt"), null, null)).get("counted");
    }

    /** Take the reply out of the study, as long as its phase takes replies. */
    void withdraw() throws IOException, InterruptedException {
        Map<String, Object> letter = prepared();
        if (letter.containsKey("tried")) {
            String wish = Json.canonical(Map.of("reply", letter.get("body"), "secret", letter.get("secret")));
            Object done = Json.object(ask("POST", "/withdraw", (String) letter.get("token"), wish)).get("withdrawn");
            if (!Boolean.TRUE.equals(done)) throw new Refused("collector", "the reply was not removed");
        }
        letter.put("withdrawn", true);
        keep(hash, letter);
    }

    /** The plan behind the hash, from a collector that need not be trusted. */
    private Map<String, Object> plan() throws IOException, InterruptedException {
        Map<String, Object> plan = Json.object(Json.object(ask("GET", "", null, null)).get("plan"));
        if (!Json.hash(plan).equals(hash)) throw new Refused("plan", "the collector's plan is not the one with this hash");
        return Plans.read(plan);
    }

    /** The task, once the study wants somebody. */
    private Map<String, Object> message(String token) throws IOException, InterruptedException {
        for (int turn = 0; turn < TURNS; turn++) {
            Map<String, Object> found = Json.object(ask("GET", "/task", token, null));
            if (found.containsKey("task")) {
                if (!hash.equals(found.get("plan"))) throw new Refused("terms", "the task belongs to another study");
                return found;
            }
            Thread.sleep(500);
        }
        throw new Refused("collector", "the study wants nobody now");
    }

    /** z*; a number that the study predicts stands before it, with its public range scaled to [-1, 1]. */
    private static double[] features(Map<String, Object> plan, String label, double[] row) {
        double[] z = Curves.encode(Json.object(plan.get("encoder")), null, Arrays.stream(row).boxed().map(Object.class::cast).toList());
        if (plan.get("target_range") == null) return z;
        double[] range = Json.numbers(plan.get("target_range")), all = new double[z.length + 1];
        double target = 2 * (Curves.number(label) - range[0]) / (range[1] - range[0]) - 1;
        all[0] = Double.isNaN(target) ? 0 : Math.min(Math.max(target, -1), 1);
        System.arraycopy(z, 0, all, 1, z.length);
        return all;
    }

    // -- what is kept -----------------------------------------------------------------------------

    private Map<String, Object> affordable(double limit, double epsilon) throws IOException {
        Map<String, Object> ledger = kept("ledger");
        Map<String, Object> spent = ledger.containsKey("spent") ? Json.object(ledger.get("spent")) : new TreeMap<>();
        if (spent.containsKey(hash)) throw new Refused("budget", "this study was paid for before");
        if (ledger.containsKey("limit") && Json.number(ledger.get("limit")) != limit) throw new Refused("budget", "the limit stays as it was set");
        BigDecimal sum = decimal(epsilon); // as people write numbers: 0.1 is one tenth
        for (Object one : spent.values()) sum = sum.add(decimal(Json.number(one)));
        if (sum.compareTo(decimal(limit)) > 0) throw new Refused("budget", "more than is left of the limit");
        spent.put(hash, epsilon);
        ledger.put("spent", spent);
        ledger.put("limit", limit);
        return ledger;
    }

    private static BigDecimal decimal(double value) {
        return new BigDecimal(Json.text(value));
    }

    private void spend(double limit, double epsilon) throws IOException {
        keep("ledger", affordable(limit, epsilon));
    }

    private Map<String, Object> letter() throws IOException {
        return kept(hash);
    }

    private Map<String, Object> prepared() throws IOException {
        Map<String, Object> letter = letter();
        if (!letter.containsKey("body")) throw new Refused("form", "nothing was prepared for this study");
        return letter;
    }

    private Map<String, Object> kept(String name) throws IOException {
        Path path = folder.resolve(name + ".json");
        return Files.exists(path) ? Json.object(Json.read(Files.readString(path))) : new TreeMap<>();
    }

    /** Complete or not at all, and on the disk when this returns. */
    private void keep(String name, Map<String, Object> content) throws IOException {
        Path path = folder.resolve(name + ".json");
        Path beside = folder.resolve(name + ".new");
        try (FileChannel file = FileChannel.open(beside, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE)) {
            ByteBuffer bytes = ByteBuffer.wrap(Json.canonical(content).getBytes(StandardCharsets.UTF_8));
            while (bytes.hasRemaining()) file.write(bytes);
            file.force(true);
        }
        Files.move(beside, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        try (FileChannel directory = FileChannel.open(folder)) {
            directory.force(true);
        }
    }

    // -- requests ---------------------------------------------------------------------------------

    /** Ask until the request is granted or refused: lost connections, 5xx and 429 are neither. */
    private Object ask(String method, String path, String token, String body) throws InterruptedException {
        HttpRequest.BodyPublisher sent = body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body);
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + "/api/studies/" + hash.substring(0, 16) + path))
            .timeout(Duration.ofMinutes(2)).method(method, sent);
        if (token != null) request.header("Authorization", "Bearer " + token);
        if (body != null && !body.isEmpty()) request.header("Content-Type", "application/json");
        for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
            try {
                HttpResponse<String> answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
                int status = answer.statusCode();
                if (status == 200 || status == 201 || status == 202) return Json.read(answer.body());
                if (status < 500 && status != 429) throw new Refused("collector", "HTTP " + status + " " + code(answer.body()));
            } catch (IOException lost) {
                // asked again
            }
            Thread.sleep(200L << (attempt - 1));
        }
        throw new Refused("collector", "it cannot be reached");
    }

    private static Object code(String body) {
        try {
            return Json.object(Json.object(Json.read(body)).get("error")).get("code");
        } catch (Refused noJson) {
            return "";
        }
    }
}
