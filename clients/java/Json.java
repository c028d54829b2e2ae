import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** JSON: read, written in its canonical form (RFC 8785), and hashed. Numbers are doubles. */
final class Json {
    private static final int DEEPEST = 100;
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Maps, lists, strings, doubles, booleans and null. */
    static Object read(String text) {
        Json json = new Json(text);
        Object found = json.value(0);
        json.space();
        if (json.at != text.length()) throw new Refused("form", "there is more than one value");
        return found;
    }

    /** The only text of a value. */
    static String canonical(Object value) {
        StringBuilder made = new StringBuilder();
        write(value, made);
        return made.toString();
    }

    /** The hash that names a study. */
    static String hash(Object value) {
        return sha256(canonical(value).getBytes(StandardCharsets.UTF_8));
    }

    static String sha256(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException impossible) {
            throw new AssertionError(impossible);
        }
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        if (value instanceof Map) return (Map<String, Object>) value;
        throw new Refused("form", "an object is missing");
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        if (value instanceof List) return (List<Object>) value;
        throw new Refused("form", "a list is missing");
    }

    static double number(Object value) {
        if (value instanceof Double number) return number;
        throw new Refused("form", "a number is missing");
    }

    static double[] numbers(Object value) {
        return list(value).stream().mapToDouble(Json::number).toArray();
    }

    /** As ECMAScript writes a double: the fewest digits that are read as the same double. */
    static String text(double value) {
        if (value == 0) return "0";
        if (Double.isNaN(value) || Double.isInfinite(value)) throw new Refused("form", "not a finite number");
        BigDecimal exact = new BigDecimal(Math.abs(value));
        BigDecimal shortest = exact;
        for (int digits = 1; digits <= 17; digits++) {
            shortest = exact.round(new MathContext(digits, RoundingMode.HALF_EVEN)).stripTrailingZeros();
            if (shortest.doubleValue() == Math.abs(value)) break;
        }
        String digits = shortest.unscaledValue().toString();
        int point = digits.length() - shortest.scale(); // digits before the point
        String sign = value < 0 ? "-" : "";
        if (digits.length() <= point && point <= 21) return sign + digits + "0".repeat(point - digits.length());
        if (0 < point && point <= 21) return sign + digits.substring(0, point) + "." + digits.substring(point);
        if (-6 < point && point <= 0) return sign + "0." + "0".repeat(-point) + digits;
        String rest = digits.length() > 1 ? "." + digits.substring(1) : "";
        return sign + digits.charAt(0) + rest + "e" + (point > 0 ? "+" : "-") + Math.abs(point - 1);
    }

    private static void write(Object value, StringBuilder made) {
        if (value instanceof Map<?, ?> map) {
            char before = '{';
            for (Map.Entry<?, ?> entry : new TreeMap<>(map).entrySet()) { // strings compare by UTF-16 units
                made.append(before);
                write(entry.getKey(), made);
                made.append(':');
                write(entry.getValue(), made);
                before = ',';
            }
            made.append(before == '{' ? "{}" : "}");
        } else if (value instanceof List<?> list) {
            char before = '[';
            for (Object one : list) {
                made.append(before);
                write(one, made);
                before = ',';
            }
            made.append(before == '[' ? "[]" : "]");
        } else if (value instanceof String string) {
            made.append('"');
            for (char one : string.toCharArray()) made.append(escaped(one));
            made.append('"');
        } else if (value instanceof Double number) {
            made.append(text(number));
        } else {
            made.append(value); // true, false, null
        }
    }

    private static String escaped(char one) {
        int known = "\"\\\b\f\n\r\t".indexOf(one);
        if (known >= 0) return "\\" + "\"\\bfnrt".charAt(known);
        return one < 32 ? String.format("\\u%04x", (int) one) : String.valueOf(one);
    }

    private Object value(int depth) {
        if (depth > DEEPEST) throw new Refused("form", "nested too deep");
        space();
        switch (at < text.length() ? text.charAt(at) : ' ') {
            case '{': {
                Map<String, Object> found = new TreeMap<>();
                for (char next = '{'; next != '}'; ) {
                    at++;
                    space();
                    if (next == '{' && peek('}')) break;
                    String name = string();
                    space();
                    take(':');
                    if (found.put(name, value(depth + 1)) != null) throw new Refused("form", "a name twice");
                    space();
                    next = one(",}");
                }
                at++;
                return found;
            }
            case '[': {
                List<Object> found = new ArrayList<>();
                for (char next = '['; next != ']'; ) {
                    at++;
                    space();
                    if (next == '[' && peek(']')) break;
                    found.add(value(depth + 1));
                    space();
                    next = one(",]");
                }
                at++;
                return found;
            }
            case '"':
                return string();
            default:
                return word();
        }
    }

    private Object word() {
        int end = at;
        while (end < text.length() && "+-.0123456789Eabceflnrstu".indexOf(text.charAt(end)) >= 0) end++;
        String word = text.substring(at, end);
        at = end;
        switch (word) {
            case "true": return true;
            case "false": return false;
            case "null": return null;
            default:
        }
        if (!word.matches("-?(0|[1-9]\\d*)(\\.\\d+)?([eE][+-]?\\d+)?")) throw new Refused("form", "no JSON");
        return Double.valueOf(word);
    }

    private String string() {
        take('"');
        StringBuilder found = new StringBuilder();
        while (true) {
            char one = one(null);
            at++;
            if (one == '"') return found.toString();
            if (one < 32) throw new Refused("form", "no JSON");
            if (one != '\\') {
                found.append(one);
                continue;
            }
            char escape = one("\"\\/bfnrtu");
            at++;
            int known = "bfnrt".indexOf(escape);
            if (escape == 'u') {
                if (at + 4 > text.length() || !text.substring(at, at + 4).matches("[0-9a-fA-F]{4}")) throw new Refused("form", "no JSON");
                found.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                at += 4;
            } else {
                found.append(known >= 0 ? "\b\f\n\r\t".charAt(known) : escape);
            }
        }
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
    }

    private boolean peek(char wanted) {
        return at < text.length() && text.charAt(at) == wanted;
    }

    private void take(char wanted) {
        one(String.valueOf(wanted));
        at++;
    }

    private char one(String allowed) {
        if (at >= text.length() || (allowed != null && allowed.indexOf(text.charAt(at)) < 0)) throw new Refused("form", "no JSON");
        return text.charAt(at);
    }
}
