import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Predicate;

/** What a study may ask: the form of each task, and what its design fixes of it. */
final class Designs {
    private static final double LARGEST = 1e100, WIDE = 1e50;

    /** A field: a rule for the value, or of every entry of an array with these dimensions. */
    private record Field(Predicate<Object> rule, List<String> shape, Object usual, boolean optional, boolean fixed) {}

    private static final Map<String, Map<String, Field>> TASKS = tasks();

    private Designs() {}

    private static Map<String, Map<String, Field>> tasks() {
        Map<String, Field> common = Map.of("unit", choice("person"), "epsilon", number(1e-6, 1e6), "people", whole(0, 1L << 31));
        Map<String, Field> folds = with(common, "folds", optional(array(-1, 1, "f"), List.of()));
        Map<String, Field> line = with(folds, "clipped", flag(false), "intercept", real("people", "m"), "coefficients", real("people", "m", "dimension"),
            "centers", real("people", "m", "dimension"), "scales", array(1e-50, LARGEST, "people", "m", "dimension"));
        Map<String, Map<String, Field>> all = new HashMap<>();
        all.put("stump", with(folds, "uses_label", flag(true), "coordinates", integers("people", "k"), "thresholds", real("people", "k"), "positive", integers("people")));
        all.put("confidence", with(line, "damping", number(1e-6, 1e6), "variances", array(0, LARGEST, "people", "m", "known"), "dithers", array(-1, 1, "people", "k")));
        all.put("evaluation", line);
        Field members = new Field(number(0, 1L << 53).rule.and(Designs::integer), List.of("people", "m"), null, false, true);
        all.put("member", with(line, "member", members, "positive", integers("people", "m", "positives")));
        String[] boxes = Boxes.NAMES.toArray(String[]::new);
        all.put("moment", with(common, "dimension", whole(1, 1 << 16), "mechanism_name", choice("piecewise", boxes), "positive", integers("people")));
        Field share = new Field(x -> x == null || number(0, 1 - 1e-9).rule.test(x) && (Double) x > 0, null, null, true, true);
        all.put("vector", with(common, "dimension", whole(1, 1 << 16), "mechanism_name", choice("laplace", boxes), "label_share", share,
            "protects", choice("both", "both", "features", "labels"), "positive", optional(integers("positives"), List.of(1.0))));
        all.put("summary", with(folds, "statistic", choice(null, "spread", "products", "residual", "classes", "cross"), "classes", whole(1, 1 << 12),
            "clip", number(1e-9, 1e9), "reach", optional(number(1 / WIDE, WIDE), WIDE), "limit", number(1 / WIDE, WIDE), "centers", array(-WIDE, WIDE, "d"),
            "scales", array(1 / WIDE, WIDE, "d"), "matrix", array(-WIDE, WIDE, "q", "d"), "offsets", array(-WIDE, WIDE, "c", "q"),
            "weights", optional(array(-WIDE, WIDE, "w"), List.of(1.0)), "theta", optional(array(-WIDE, WIDE, "s", "t"), List.of(List.of(1.0)))));
        return all;
    }

    /** A task that this plan may ask one person, with its defaults; everything else is refused. */
    static Map<String, Object> readTask(Map<String, Object> plan, Object sent) {
        Map<String, Map<String, Predicate<Object>>> asked = asks(plan);
        Object name = sent instanceof Map ? Json.object(sent).get("name") : null;
        if (!(name instanceof String known) || !asked.containsKey(known)) throw new Refused("kind", "this study asks no such task");
        Map<String, Field> rules = TASKS.get(known);
        Map<String, Double> sizes = new TreeMap<>();
        Map<String, Object> task = fields(rules, Json.object(sent), sizes);
        if (known.equals("summary")) form(fitting(task, sizes), "summary");
        double features = switch (known) {
            case "stump" -> 1 + Arrays.stream(Json.numbers(Json.list(task.get("coordinates")).get(0))).max().orElse(-1);
            case "summary" -> sizes.get("d");
            default -> sizes.get("dimension");
        };
        double folds = sizes.getOrDefault("f", 0.0);
        form(folds == 0 || features <= 2 * folds, "folds");
        Map<String, Predicate<Object>> terms = asked.get(known);
        rules.forEach((field, rule) -> {
            if (field.equals("people") || !rule.fixed && !terms.containsKey(field)) return;
            Predicate<Object> wanted = terms.getOrDefault(field, x -> Objects.equals(x, rule.usual));
            boolean agrees = rule.shape == null ? wanted.test(task.get(field)) : every(task.get(field), wanted, rule, terms.containsKey(field));
            terms(agrees, field);
        });
        sizes.forEach((field, length) -> terms(rules.containsKey(field) || terms.getOrDefault(field, x -> x.equals(0.0)).test(length), field));
        terms(Json.number(task.get("people")) == 1, "people");
        int most = Curves.size(Json.object(Json.object(plan.get("encoder")).get("basis"))) + (plan.get("target_range") == null ? 0 : 1);
        terms((folds > 0 ? folds : features) <= most, "features");
        task.put("name", known);
        return task;
    }

    /** A task with its defaults, as far as its form goes: whether a study may ask it is another question. */
    static Map<String, Object> complete(Map<String, Object> sent) {
        Map<String, Object> task = fields(TASKS.get(sent.get("name")), sent, new TreeMap<>());
        task.put("name", sent.get("name"));
        return task;
    }

    // -- what each design asks --------------------------------------------------------------------

    private static Map<String, Map<String, Predicate<Object>>> asks(Map<String, Object> plan) {
        Map<String, Object> design = Json.object(plan.get("design"));
        Terms all = new Terms(Json.number(plan.get("epsilon")), plan.get("unit"));
        int own = Curves.size(Json.object(Json.object(plan.get("encoder")).get("basis"))), k = Json.list(plan.get("classes")).size();
        int d = (int) number(design, "n_features", own);
        int f = Boolean.TRUE.equals(design.get("spread_differs")) ? d : 0;
        int scores = k == 2 ? 1 : k;
        double members = number(design, "n_classifiers", 50);
        Predicate<Object> positive = k == 2 ? is(1) : below(k);
        switch ((String) design.get("name")) {
            case "answers" -> {
                all.ask("stump", "k", range(1, Math.min(d + 1, 30) + 1), "coordinates", below(d + f), "positive", positive, "uses_label", is(false).or(is(true)),
                    "f", is(0).or(is(f)));
                all.ask("evaluation", "dimension", is(d + f), "f", is(f), "clipped", is(true), "m", is(1));
                all.confidence(design, d, f, scores);
            }
            case "vectors" -> {
                all.columns(d, f, k, k == 2 ? List.of("products", "spread", "residual") : List.of("products", "spread", "residual", "classes"));
                all.ask("evaluation", "dimension", is(d + f), "f", is(f), "clipped", is(true), "m", is(scores));
                all.confidence(design, d, f, scores);
            }
            case "vector_numbers" -> {
                all.columns(d + 1, 0, 0, List.of("products", "spread", "cross"));
                all.ask("evaluation", "dimension", is(d + 1), "clipped", is(true), "m", is(3));
            }
            case "moments" -> all.ask("moment", "dimension", is(own), "positive", positive, "mechanism_name", is(text(design, "mechanism", "piecewise")));
            case "noisy_labels" -> all.ask("vector", "dimension", is(own), "positive", positive, "positives", is(1), "protects", is("labels"));
            case "mrma" -> {
                all.reports(plan, design, own, k);
                all.members(Json.number(plan.get("epsilon")) * number(design, "verdict_share", 1), own, k, members, number(design, "classifiers_per_person", 1));
                all.ask("evaluation", "epsilon", is(Json.number(plan.get("epsilon")) * number(design, "verdict_share", 1)), "dimension", is(own), "m", is(scores));
            }
            case "mrma_stream" -> {
                all.reports(plan, design, own, k);
                all.members(Json.number(plan.get("epsilon")), own, k, members, 1);
            }
            default -> {
                all.members(Json.number(plan.get("epsilon")), own, k, Json.list(design.get("intercepts")).size(), 1);
                all.ask("evaluation", "dimension", is(own), "m", is(scores));
            }
        }
        return all;
    }

    /** Tasks by name, each with what is fixed of its fields and dimensions. */
    private static final class Terms extends HashMap<String, Map<String, Predicate<Object>>> {
        private static final long serialVersionUID = 1L;
        private final transient Object unit;
        private final double epsilon;

        Terms(double epsilon, Object unit) {
            this.epsilon = epsilon;
            this.unit = unit;
        }

        @SuppressWarnings("unchecked")
        void ask(String task, Object... fixed) {
            Map<String, Predicate<Object>> terms = new HashMap<>(Map.of("epsilon", is(epsilon), "unit", is(unit)));
            for (int k = 0; k < fixed.length; k += 2) terms.put((String) fixed[k], (Predicate<Object>) fixed[k + 1]);
            put(task, terms);
        }

        void confidence(Map<String, Object> design, int d, int f, int scores) {
            if (number(design, "temperature_share", 0) == 0) return;
            ask("confidence", "dimension", is(d + f), "f", is(f), "known", is(d + f + 1), "clipped", is(true), "m", is(scores),
                "k", is(questions(epsilon, 4)), "damping", range(0, LARGEST));
        }

        /** Questions about single columns, and vectors of them. */
        void columns(int d, int f, int classes, List<String> statistics) {
            int k = Math.max(classes, 1), told = d + f;
            ask("stump", "k", is(questions(epsilon, d)), "coordinates", below(d), "positive", is(1), "uses_label", is(false));
            ask("summary", "classes", is(k), "d", is(d).or(is(told)), "f", is(0).or(is(f)), "q", range(1, told + 1), "statistic", (Predicate<Object>) statistics::contains,
                "clip", is(3), "c", is(1).or(is(k)), "w", range(1, told + 2), "s", is(1).or(is(Math.max(classes == 2 ? 1 : classes, 1))), "t", range(1, told + 2),
                "reach", below(1e51), "limit", below(1e51));
        }

        void reports(Map<String, Object> plan, Map<String, Object> design, int d, int k) {
            ask("vector", "dimension", is(d), "mechanism_name", is(text(design, "mechanism", "laplace")), "label_share", is(design.get("label_share")),
                "protects", is(plan.get("protects")), "positive", half(k), "positives", is(k / 2));
        }

        void members(double each, int d, int k, double members, double m) {
            ask("member", "epsilon", is(each), "dimension", is(d), "m", is(m), "member", below(members), "positive", half(k), "positives", is(k / 2));
        }
    }

    /** The number of questions whose answers tell most, of k answered together. */
    private static int questions(double epsilon, int most) {
        int best = 1;
        for (int k = 2; k <= most; k++) if (information(epsilon, k) > information(epsilon, best)) best = k;
        return best;
    }

    private static double information(double epsilon, int k) {
        double alpha = -Math.expm1(-epsilon) / (1 + (Math.pow(2, k) - 1) * Math.exp(-epsilon));
        return k * alpha * alpha;
    }

    private static Predicate<Object> half(int classes) {
        return classes == 2 ? is(1) : below(classes);
    }

    private static Predicate<Object> is(Object wanted) {
        Object value = wanted instanceof Number number ? Double.valueOf(number.doubleValue()) : wanted;
        return x -> Objects.equals(x, value);
    }

    private static Predicate<Object> below(double end) {
        return range(0, end);
    }

    private static Predicate<Object> range(double start, double end) {
        return x -> x instanceof Double one && one >= start && one < end;
    }

    private static double number(Map<String, Object> design, String name, double usual) {
        return design.get(name) instanceof Double one ? one : usual;
    }

    private static String text(Map<String, Object> design, String name, String usual) {
        return (String) design.getOrDefault(name, usual);
    }

    // -- the form of tasks ------------------------------------------------------------------------

    private static boolean fitting(Map<String, Object> task, Map<String, Double> sizes) {
        String statistic = (String) task.get("statistic");
        double q = sizes.get("q"), k = Json.number(task.get("classes")), c = sizes.get("c"), s = sizes.get("s");
        boolean residual = statistic.equals("residual");
        double weights = residual || statistic.equals("classes") ? q + 1 : statistic.equals("cross") ? q : 1;
        return q > 0 && sizes.get("d") > 0 && (c == 1 || c == k) && sizes.get("w") == weights && sizes.get("t") == (residual ? q + 1 : 1)
            && (s == 1 || residual && s == k);
    }

    /** All fields, defaults included; `sizes` gets the lengths that the fields give names to. */
    private static Map<String, Object> fields(Map<String, Field> rules, Map<String, Object> sent, Map<String, Double> sizes) {
        for (String name : sent.keySet()) form(name.equals("name") || rules.containsKey(name), name);
        Map<String, Object> task = new TreeMap<>();
        for (boolean arrays : new boolean[] {false, true}) { // a number may give the length of an array
            rules.forEach((name, rule) -> {
                if (arrays != (rule.shape != null)) return;
                form(sent.containsKey(name) || rule.optional, name);
                Object value = sent.getOrDefault(name, rule.usual);
                form(arrays ? shaped(value, rule, 0) && lengths(value, rule.shape, sizes) : rule.rule.test(value), name);
                if (!arrays && value instanceof Double number && integer(number)) sizes.put(name, number);
                task.put(name, value);
            });
        }
        return task;
    }

    private static boolean shaped(Object value, Field field, int depth) {
        if (depth == field.shape.size()) return field.rule.test(value);
        if (!(value instanceof List<?> all)) return false;
        boolean inner = depth + 1 < field.shape.size();
        if (inner && (all.isEmpty() || all.stream().anyMatch(row -> !(row instanceof List<?> one) || one.size() != ((List<?>) all.get(0)).size()))) return false;
        return all.stream().allMatch(one -> shaped(one, field, depth + 1));
    }

    private static boolean lengths(Object value, List<String> shape, Map<String, Double> sizes) {
        Object part = value;
        for (String name : shape) {
            List<Object> all = Json.list(part);
            Double known = sizes.putIfAbsent(name, (double) all.size());
            if (known != null && known != all.size()) return false;
            part = all.isEmpty() ? List.of() : all.get(0);
        }
        return true;
    }

    /** Whether each entry of an array is as wanted; without a wish of the design, whether it is the usual one. */
    private static boolean every(Object value, Predicate<Object> wanted, Field field, boolean given) {
        if (!given) return Objects.equals(value, field.usual);
        return value instanceof List<?> all ? all.stream().allMatch(one -> every(one, wanted, field, true)) : wanted.test(value);
    }

    private static void form(boolean holds, String name) {
        if (!holds) throw new Refused("form", "the task cannot be understood: " + name);
    }

    private static void terms(boolean holds, String name) {
        if (!holds) throw new Refused("terms", name + " of the task is another one here");
    }

    private static boolean integer(Object x) {
        return x instanceof Double one && one == Math.rint(one) && Math.abs(one) <= Plans.LARGEST_WHOLE;
    }

    private static Field number(double least, double most) {
        return new Field(x -> x instanceof Double one && one >= least && one <= most, null, null, false, true);
    }

    private static Field whole(double least, double most) {
        return new Field(number(least, most).rule.and(Designs::integer), null, null, false, true);
    }

    private static Field flag(boolean usual) {
        return new Field(x -> x instanceof Boolean, null, usual, true, true);
    }

    /** One of several texts, or any text where none is given. */
    private static Field choice(String usual, String... options) {
        return new Field(x -> x instanceof String one && !one.isBlank() && one.length() <= 200 && (options.length == 0 || List.of(options).contains(one)),
            null, usual, usual != null, true);
    }

    private static Field real(String... shape) {
        return array(-LARGEST, LARGEST, shape);
    }

    private static Field array(double least, double most, String... shape) {
        return new Field(number(least, most).rule, List.of(shape), null, false, false);
    }

    private static Field integers(String... shape) {
        return new Field(number(0, 1 << 20).rule.and(Designs::integer), List.of(shape), null, false, true);
    }

    private static Field optional(Field field, Object usual) {
        return new Field(field.rule, field.shape, usual, true, field.fixed);
    }

    private static Map<String, Field> with(Map<String, Field> fields, Object... more) {
        Map<String, Field> all = new HashMap<>(fields);
        for (int k = 0; k < more.length; k += 2) all.put((String) more[k], (Field) more[k + 1]);
        return all;
    }
}
