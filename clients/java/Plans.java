import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/** Checks that a plan is one that this client understands, member by member. */
final class Plans {
    private static final int MOST_FEATURES = 1 << 16;
    static final double LARGEST_WHOLE = 9007199254740991.0;

    private static final Predicate<Object> FINITE = x -> x instanceof Double one && Double.isFinite(one);
    private static final Predicate<Object> ABOVE = x -> FINITE.test(x) && (Double) x > 0;
    private static final Predicate<Object> FRACTION = x -> ABOVE.test(x) && (Double) x < 1;
    private static final Predicate<Object> SHARE = x -> FRACTION.test(x) || x instanceof Double one && one == 0;
    private static final Predicate<Object> FLAG = x -> x instanceof Boolean;
    private static final Predicate<Object> OBJECT = x -> x instanceof Map;
    private static final Predicate<Object> ANY = x -> true;
    private static final Predicate<Object> INTERVAL = list(FINITE, 2, 2).and(Plans::grows);
    private static final Predicate<Object> PARAGRAPH = text(1, 2000);
    private static final Predicate<Object> MECHANISM = among("laplace", "piecewise", "duchi", "hybrid");

    private static final Map<String, Predicate<Object>> PLAN = Map.ofEntries(
        Map.entry("epsilon", ABOVE), Map.entry("n_people", whole(1, 1e9)), Map.entry("encoder", OBJECT),
        Map.entry("classes", list(FLAG.or(FINITE).or(text(0, 200)), 0, Integer.MAX_VALUE)), Map.entry("design", OBJECT),
        Map.entry("protects", among("both", "features", "labels")), Map.entry("unit", text(1, 100)), Map.entry("seed", whole(0, LARGEST_WHOLE)),
        Map.entry("title", text(0, 200)), Map.entry("target_range", orNull(INTERVAL)));

    private static final Map<String, Predicate<Object>> WAVES = Map.of("n_basis", whole(1, MOST_FEATURES), "domain_range", INTERVAL);
    private static final Map<String, Map<String, Predicate<Object>>> BASES = Map.of(
        "cosine", WAVES, "fourier", WAVES, "smooth", Map.of("n_basis", whole(1, 64), "domain_range", INTERVAL),
        "bspline", with(WAVES, "order", whole(1, 100), "knots", orNull(list(FINITE, 0, MOST_FEATURES))),
        "custom", Map.of("points", list(FINITE, 2, Integer.MAX_VALUE), "values", list(list(FINITE, 1, MOST_FEATURES), 2, Integer.MAX_VALUE)),
        "identity", Map.of("n_basis", whole(1, MOST_FEATURES)), "channels", Map.of("parts", list(OBJECT, 1, 1024)));

    private static final Map<String, Predicate<Object>> KNOWN = Map.of(
        "ordered", orNull(FLAG), "center_known", FLAG, "n_features", orNull(whole(1, LARGEST_WHOLE)), "evaluation_share", SHARE);
    private static final Map<String, Predicate<Object>> CURVES = with(
        KNOWN, "temperature_share", SHARE, "class_share", orNull(FRACTION), "spread_differs", FLAG);
    private static final Map<String, Predicate<Object>> JUDGED = Map.of(
        "cutoff", orNull(x -> FINITE.test(x) && (Double) x >= 0.5 && (Double) x < 1), "strictness", x -> FINITE.test(x) && (Double) x >= 0);
    private static final Map<String, Predicate<Object>> REPORTED = with(
        JUDGED, "n_classifiers", whole(1, 1e5), "member_size", whole(2, 1e9), "learner", (Predicate<Object>) x -> x instanceof String,
        "learner_parameters", OBJECT, "training_share", FRACTION, "mechanism", MECHANISM, "label_share", orNull(FRACTION), "boundary_spread", orNull(ABOVE));
    private static final Map<String, Map<String, Predicate<Object>>> DESIGNS = Map.of(
        "answers", CURVES, "vectors", CURVES, "vector_numbers", KNOWN, "moments", Map.of("mechanism", MECHANISM), "noisy_labels", Map.of("ridge", ABOVE),
        "mrma", with(REPORTED, "verdict_share", FRACTION.or(whole(1, 1)), "classifiers_per_person", whole(1, LARGEST_WHOLE), "evaluation_share", SHARE),
        "mrma_stream", with(REPORTED, "new_classifiers", whole(1, LARGEST_WHOLE), "memory", FRACTION, "alarm", ABOVE, "carried", orNull(OBJECT), "round", whole(0, 1e9)),
        "exchange", with(JUDGED, "intercepts", list(FINITE, 1, Integer.MAX_VALUE), "coefficients", list(list(FINITE, 1, MOST_FEATURES), 1, Integer.MAX_VALUE),
            "halves", orNull(list(list(whole(0, LARGEST_WHOLE), 1, Integer.MAX_VALUE), 1, Integer.MAX_VALUE)), "evaluation_share", SHARE));

    private Plans() {}

    /** The plan, or a refusal; its hash is compared elsewhere. */
    static Map<String, Object> read(Object found) {
        sound(OBJECT.test(found), "the plan is no object");
        Map<String, Object> plan = Json.object(found);
        sound(made(plan, PLAN.keySet(), with(PLAN, "information", (Predicate<Object>) Plans::information)), "the plan cannot be understood");
        List<Object> classes = Json.list(plan.get("classes"));
        Set<Object> different = new HashSet<>(); // true is 1, and text is no number
        for (Object one : classes) {
            sound(!(one instanceof Double x) || x != Math.rint(x) || Math.abs(x) <= LARGEST_WHOLE, "a label is too large");
            different.add(one instanceof Boolean flag ? Double.valueOf(flag ? 1 : 0) : one);
        }
        boolean regression = plan.get("target_range") != null;
        sound(regression ? classes.isEmpty() : different.size() == classes.size() && classes.size() >= 2, "classes and target_range do not fit together");
        encoder(Json.object(plan.get("encoder")));
        design(plan, Json.object(plan.get("design")));
        return plan;
    }

    private static boolean information(Object found) {
        Set<String> needed = Set.of("version", "institution", "contact", "purpose");
        Map<String, Predicate<Object>> rules = new HashMap<>();
        for (String name : needed) rules.put(name, PARAGRAPH);
        for (String name : List.of("officer", "approval", "risks", "retention", "results")) rules.put(name, PARAGRAPH);
        return made(found, needed, rules);
    }

    private static void encoder(Map<String, Object> encoder) {
        Map<String, Predicate<Object>> parts = Map.of("basis", OBJECT, "rescale", OBJECT);
        sound(made(encoder, parts.keySet(), with(parts, "table", OBJECT)), "the encoder cannot be understood");
        Map<String, Object> basis = Json.object(encoder.get("basis"));
        basis(basis, true);
        int d = Curves.size(basis);
        sound(d <= MOST_FEATURES, "there are too many features");
        Map<String, Object> rescale = new HashMap<>(Json.object(encoder.get("rescale")));
        Object name = rescale.remove("name");
        Map<String, Predicate<Object>> sizes = "max_abs".equals(name) ? Map.of()
            : Map.of("scale", ABOVE.or(list(ABOVE, d, d)), "center", FINITE.or(list(FINITE, d, d)));
        sound(among("clip", "tanh", "max_abs").test(name) && made(rescale, sizes.keySet(), sizes), "the rescaler does not make sense");
        if (!encoder.containsKey("table")) return;
        Map<String, Object> table = Json.object(encoder.get("table"));
        Map<String, Predicate<Object>> column = Map.of("key", ANY, "low", FINITE, "high", FINITE, "categories", list(ANY, 0, Integer.MAX_VALUE));
        Predicate<Object> sound = one -> made(one, column.keySet(), column) && Json.number(Json.object(one).get("low")) < Json.number(Json.object(one).get("high"));
        Map<String, Predicate<Object>> rules = Map.of("columns", list(sound, 1, Integer.MAX_VALUE), "named", FLAG);
        sound(made(table, rules.keySet(), rules) && "identity".equals(basis.get("name")), "the table cannot be understood");
        int numbers = Json.list(table.get("columns")).stream().mapToInt(one -> Math.max(1, Json.list(Json.object(one).get("categories")).size())).sum();
        sound(numbers == d, "the table has another number of features");
    }

    private static void basis(Map<String, Object> basis, boolean alone) {
        Map<String, Object> given = new HashMap<>(basis);
        Object name = given.remove("name");
        sound(name instanceof String known && BASES.containsKey(known) && (alone || !List.of("identity", "channels").contains(name)), "the basis is unknown");
        Map<String, Predicate<Object>> rules = BASES.get(name);
        sound(made(given, rules.keySet(), rules), "the basis cannot be understood");
        switch ((String) name) {
            case "channels" -> {
                for (Map<String, Object> part : Curves.parts(basis)) basis(part, false);
                String domain = Json.canonical(List.of(box(Curves.domain(basis))));
                for (Map<String, Object> part : Curves.parts(basis)) sound(Json.canonical(List.of(box(Curves.domain(part)))).equals(domain), "channels have other domains");
            }
            case "custom" -> {
                List<Object> values = Json.list(basis.get("values"));
                sound(grows(basis.get("points")) && values.size() == Json.list(basis.get("points")).size(), "points and values differ");
                sound(values.stream().allMatch(row -> Json.list(row).size() == Curves.size(basis)), "rows of values differ in length");
            }
            case "bspline" -> {
                double[] domain = Json.numbers(basis.get("domain_range"));
                int order = (int) Json.number(basis.get("order"));
                if (basis.get("knots") == null) sound(Curves.size(basis) >= order, "there are fewer functions than the order");
                else {
                    double[] knots = Json.numbers(basis.get("knots"));
                    sound(Curves.size(basis) == order + knots.length && grows(basis.get("knots")), "the knots do not fit");
                    for (double knot : knots) sound(knot > domain[0] && knot < domain[1], "a knot is outside");
                }
            }
            default -> { }
        }
    }

    private static void design(Map<String, Object> plan, Map<String, Object> design) {
        Map<String, Object> given = new HashMap<>(design);
        Object name = given.remove("name");
        sound(name instanceof String known && DESIGNS.containsKey(known), "the design is unknown");
        sound(made(given, Set.of(), DESIGNS.get(name)), "the design cannot be understood");
        int d = Curves.size(Json.object(Json.object(plan.get("encoder")).get("basis"))), k = Json.list(plan.get("classes")).size();
        double members = number(given, "n_classifiers", 50);
        sound(number(given, "n_features", 1) <= d, "there are fewer features");
        sound(number(given, "evaluation_share", 0) + number(given, "temperature_share", 0) + number(given, "training_share", 0) < 1, "nobody is left");
        sound(given.get("class_share") == null || k == 2, "class_share is for two classes");
        sound(!name.equals("noisy_labels") || "labels".equals(plan.get("protects")), "noisy labels protect labels");
        sound(!name.equals("answers") || k == 2, "answers are for two classes");
        sound(!name.equals("mrma") || number(given, "classifiers_per_person", 1) <= members, "there are fewer classifiers");
        sound(!name.equals("mrma_stream") || number(given, "new_classifiers", 10) <= members, "there are fewer classifiers");
        sound(!name.equals("exchange") || candidates(given, d, k), "the candidates do not fit");
        sound(name.equals("vector_numbers") == (plan.get("target_range") != null), "vector_numbers is for numbers");
    }

    private static boolean candidates(Map<String, Object> given, int d, int k) {
        if (given.get("intercepts") == null || given.get("coefficients") == null) return false;
        int m = Json.list(given.get("intercepts")).size();
        if (Json.list(given.get("coefficients")).size() != m || !list(list(FINITE, d, d), m, m).test(given.get("coefficients"))) return false;
        if (k == 2) return given.get("halves") == null;
        return list(list(whole(0, k - 1), k / 2, k / 2).and(Plans::grows), m, m).test(given.get("halves"));
    }

    // -- rules ------------------------------------------------------------------------------------

    private static void sound(boolean holds, String what) {
        if (!holds) throw new Refused("plan", what);
    }

    /** Whether all needed members are there, and each member fulfills its rule. */
    private static boolean made(Object given, Set<String> needed, Map<String, Predicate<Object>> rules) {
        return given instanceof Map && Json.object(given).keySet().containsAll(needed)
            && Json.object(given).entrySet().stream().allMatch(one -> rules.containsKey(one.getKey()) && rules.get(one.getKey()).test(one.getValue()));
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Predicate<Object>> with(Map<String, Predicate<Object>> rules, Object... more) {
        Map<String, Predicate<Object>> all = new HashMap<>(rules);
        for (int k = 0; k < more.length; k += 2) all.put((String) more[k], (Predicate<Object>) more[k + 1]);
        return all;
    }

    private static Predicate<Object> whole(double least, double most) {
        return x -> x instanceof Double one && one == Math.rint(one) && one >= least && one <= most;
    }

    private static Predicate<Object> text(int least, int most) {
        return x -> x instanceof String one && one.codePointCount(0, one.length()) >= least && one.codePointCount(0, one.length()) <= most
            && one.matches("(?:[^\\p{C}\\p{Z}]| )*");
    }

    private static Predicate<Object> among(String... known) {
        return x -> x instanceof String one && List.of(known).contains(one);
    }

    private static Predicate<Object> orNull(Predicate<Object> rule) {
        return x -> x == null || rule.test(x);
    }

    private static Predicate<Object> list(Predicate<Object> rule, int least, int most) {
        return x -> x instanceof List<?> all && all.size() >= least && all.size() <= most && all.stream().allMatch(rule);
    }

    private static boolean grows(Object numbers) {
        double[] all = Json.numbers(numbers);
        return IntStream.range(1, all.length).allMatch(k -> all[k] > all[k - 1]);
    }

    private static List<Object> box(double[] numbers) {
        return Arrays.stream(numbers).boxed().map(Object.class::cast).toList();
    }

    private static double number(Map<String, Object> given, String name, double usual) {
        return given.get(name) instanceof Double one ? one : usual;
    }
}
