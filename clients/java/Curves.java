import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** From a curve, or a row, to features in [-1, 1]^d. Never refuses: that would tell something. */
final class Curves {
    private Curves() {}

    /** z*; points null: equally spaced over the domain. What is unknown is 0. */
    static double[] encode(Map<String, Object> encoder, double[] points, List<Object> values) {
        Map<String, Object> basis = Json.object(encoder.get("basis"));
        Map<String, Object> rescale = Json.object(encoder.get("rescale"));
        int d = size(basis);
        double[] z = coefficients(encoder, basis, points, values);
        if (rescale.get("name").equals("max_abs")) {
            double largest = Arrays.stream(z).map(Math::abs).filter(x -> x > 0).max().orElse(1);
            return Arrays.stream(z).map(x -> inside(x / largest)).toArray();
        }
        double[] scales = spread(rescale.get("scale"), d), centers = spread(rescale.get("center"), d);
        boolean bent = rescale.get("name").equals("tanh");
        return IntStream.range(0, d).mapToDouble(k -> (z[k] - centers[k]) / scales[k]).map(x -> inside(bent ? Math.tanh(x) : x)).toArray();
    }

    private static double inside(double x) {
        return Double.isNaN(x) ? 0 : Math.min(Math.max(x, -1), 1);
    }

    private static double[] coefficients(Map<String, Object> encoder, Map<String, Object> basis, double[] points, List<Object> values) {
        if (encoder.containsKey("table")) return cells(Json.list(Json.object(encoder.get("table")).get("columns")), values);
        if (basis.get("name").equals("identity")) {
            double[] row = values.stream().mapToDouble(Curves::number).toArray();
            return row.length == size(basis) && Arrays.stream(row).noneMatch(Double::isInfinite) ? row : unknown(size(basis));
        }
        List<Map<String, Object>> parts = parts(basis);
        double[][] found = IntStream.range(0, parts.size()).mapToObj(c -> {
            double[] own = values.stream().mapToDouble(x -> number(parts.size() == 1 ? x : channel(x, c, parts.size()))).toArray();
            return projected(parts.get(c), points, own);
        }).toArray(double[][]::new);
        int longest = Arrays.stream(found).mapToInt(part -> part.length).max().orElse(0);
        return IntStream.range(0, longest).boxed() // the first of every channel, then the second ones
            .flatMapToDouble(k -> Arrays.stream(found).filter(part -> k < part.length).mapToDouble(part -> part[k])).toArray();
    }

    /** The value of one channel at a point; nothing, if the point has another number of values. */
    private static Object channel(Object values, int c, int channels) {
        return values instanceof List<?> row && row.size() == channels ? row.get(c) : null;
    }

    private static double[] cells(List<Object> columns, List<Object> cells) {
        return IntStream.range(0, columns.size()).boxed().flatMapToDouble(k -> {
            Map<String, Object> column = Json.object(columns.get(k));
            List<Object> categories = Json.list(column.get("categories"));
            Object cell = cells.get(k);
            if (!categories.isEmpty()) return categories.stream().mapToDouble(one -> one.equals(cell) ? 1 : 0);
            double x = number(cell);
            return Arrays.stream(new double[] {Math.min(Math.max(x, Json.number(column.get("low"))), Json.number(column.get("high")))});
        }).toArray();
    }

    /** A number, whether or not it is text; NaN for everything else. */
    static double number(Object value) {
        if (value instanceof Double number) return number;
        if (value instanceof Boolean flag) return flag ? 1 : 0;
        try {
            return value instanceof String text ? Double.parseDouble(text.trim()) : Double.NaN;
        } catch (NumberFormatException words) {
            return Double.NaN;
        }
    }

    // -- bases ------------------------------------------------------------------------------------

    static List<Map<String, Object>> parts(Map<String, Object> basis) {
        return basis.containsKey("parts") ? Json.list(basis.get("parts")).stream().map(Json::object).toList() : List.of(basis);
    }

    /** d, the number of functions. */
    static int size(Map<String, Object> basis) {
        if (basis.containsKey("parts")) return parts(basis).stream().mapToInt(Curves::size).sum();
        if (basis.containsKey("values")) return Json.list(Json.list(basis.get("values")).get(0)).size();
        return (int) Json.number(basis.get("n_basis"));
    }

    static double[] domain(Map<String, Object> basis) {
        Map<String, Object> first = parts(basis).get(0);
        if (!first.containsKey("points")) return Json.numbers(first.get("domain_range"));
        double[] points = Json.numbers(first.get("points"));
        return new double[] {points[0], points[points.length - 1]};
    }

    /** All functions at one point. */
    private static double[] functions(Map<String, Object> basis, double t) {
        double low = domain(basis)[0], high = domain(basis)[1];
        double point = Math.min(Math.max(t, low), high);
        double u = (point - low) / (high - low);
        String name = (String) basis.get("name");
        if (name.equals("bspline")) return splines(basis, point);
        if (name.equals("custom")) return tabulated(basis, point);
        return IntStream.range(0, size(basis)).mapToDouble(k -> wave(name, u, k) / Math.sqrt(high - low)).toArray();
    }

    private static double wave(String name, double u, int k) {
        if (k == 0) return 1;
        if (name.equals("cosine")) return Math.sqrt(2) * Math.cos(Math.PI * u * k);
        double angle = 2 * Math.PI * u * ((k + 1) / 2);
        if (name.equals("fourier")) return Math.sqrt(2) * (k % 2 == 1 ? Math.sin(angle) : Math.cos(angle));
        double x = 2 * u - 1;
        if (k == 1) return Math.sqrt(3) * x;
        double m = Math.PI * (k / 2);
        for (int step = 0; step < 20; step++) m = Math.PI * (k / 2) + (k % 2 == 1 ? 1 : -1) * Math.atan(Math.tanh(m));
        return k % 2 == 1 ? Math.sin(m * x) / Math.sin(m) + Math.sinh(m * x) / Math.sinh(m) : Math.cos(m * x) / Math.cos(m) + Math.cosh(m * x) / Math.cosh(m);
    }

    private static double[] splines(Map<String, Object> basis, double t) {
        int order = (int) Json.number(basis.get("order")), n = size(basis);
        double low = domain(basis)[0], high = domain(basis)[1];
        double[] inner = basis.get("knots") != null ? Json.numbers(basis.get("knots"))
            : IntStream.rangeClosed(1, n - order).mapToDouble(k -> low + (high - low) * k / (n - order + 1)).toArray();
        double[] knots = new double[n + order];
        Arrays.fill(knots, 0, order, low);
        System.arraycopy(inner, 0, knots, order, inner.length);
        Arrays.fill(knots, n, n + order, high);
        int last = order - 1; // the interval that holds t; the last one is closed
        while (last < n - 1 && t >= knots[last + 1]) last++;
        double[] values = new double[knots.length - 1];
        values[last] = 1;
        for (int degree = 1; degree < order; degree++) {
            for (int k = 0; k + degree + 1 < knots.length; k++) {
                double left = knots[k + degree] - knots[k], right = knots[k + degree + 1] - knots[k + 1];
                values[k] = (left > 0 ? (t - knots[k]) / left * values[k] : 0) + (right > 0 ? (knots[k + degree + 1] - t) / right * values[k + 1] : 0);
            }
        }
        return Arrays.copyOf(values, n);
    }

    private static double[] tabulated(Map<String, Object> basis, double t) {
        double[] points = Json.numbers(basis.get("points"));
        int at = 0;
        while (at < points.length - 2 && t > points[at + 1]) at++;
        double weight = (t - points[at]) / (points[at + 1] - points[at]);
        double[] before = Json.numbers(Json.list(basis.get("values")).get(at)), after = Json.numbers(Json.list(basis.get("values")).get(at + 1));
        return IntStream.range(0, before.length).mapToDouble(j -> before[j] + weight * (after[j] - before[j])).toArray();
    }

    // -- least squares ----------------------------------------------------------------------------

    private static double[] projected(Map<String, Object> basis, double[] points, double[] values) {
        double low = domain(basis)[0], high = domain(basis)[1], slack = 1e-9 * (high - low);
        int n = values.length;
        double[] places = points != null ? points : IntStream.range(0, n).mapToDouble(k -> n == 1 ? low : low + (high - low) * k / (n - 1)).toArray();
        if (places.length != n || Arrays.stream(values).anyMatch(Double::isInfinite)) return unknown(size(basis));
        int[] seen = IntStream.range(0, n).filter(k -> !Double.isNaN(values[k]) && places[k] >= low - slack && places[k] <= high + slack).toArray();
        if (seen.length == 0) return unknown(size(basis));
        double[][] rows = Arrays.stream(seen).mapToObj(k -> functions(basis, places[k])).toArray(double[][]::new);
        double largest = Arrays.stream(seen).mapToDouble(k -> Math.abs(values[k])).filter(x -> x > 0).max().orElse(1); // large curves do not overflow
        double[] z = leastSquares(rows, Arrays.stream(seen).mapToDouble(k -> values[k] / largest).toArray());
        return Arrays.stream(z).map(x -> Math.min(Math.max(x * largest, -Double.MAX_VALUE), Double.MAX_VALUE)).toArray();
    }

    /** The solution of smallest norm, by one-sided Jacobi rotations of the columns, or of the rows where there are fewer. */
    private static double[] leastSquares(double[][] rows, double[] x) {
        int n = rows.length, d = rows[0].length;
        boolean wide = n < d;
        double[][] u = wide ? Arrays.stream(rows).map(double[]::clone).toArray(double[][]::new) : new double[d][n];
        if (!wide) for (int k = 0; k < n; k++) for (int j = 0; j < d; j++) u[j][k] = rows[k][j];
        double[][] v = new double[u.length][u.length];
        for (int k = 0; k < u.length; k++) v[k][k] = 1;
        boolean turned = true;
        for (int sweep = 0; sweep < 60 && turned; sweep++) {
            turned = false;
            for (int p = 0; p < u.length - 1; p++) for (int q = p + 1; q < u.length; q++) turned |= rotate(u, v, p, q);
        }
        double[] sizes = Arrays.stream(u).mapToDouble(column -> Math.sqrt(dot(column, column))).toArray();
        double cutoff = 0x1p-52 * Math.max(n, d) * Arrays.stream(sizes).max().orElse(0);
        double[] z = new double[d];
        for (int k = 0; k < sizes.length; k++) {
            if (sizes[k] <= cutoff) continue;
            double weight = dot(wide ? v[k] : u[k], x) / sizes[k] / sizes[k];
            for (int j = 0; j < d; j++) z[j] += weight * (wide ? u[k] : v[k])[j];
        }
        return z;
    }

    private static boolean rotate(double[][] u, double[][] v, int p, int q) {
        double alpha = dot(u[p], u[p]), beta = dot(u[q], u[q]), gamma = dot(u[p], u[q]);
        if (gamma == 0 || Math.abs(gamma) <= 1e-16 * Math.sqrt(alpha * beta)) return false;
        double zeta = (beta - alpha) / (2 * gamma);
        double t = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.sqrt(1 + zeta * zeta));
        double c = 1 / Math.sqrt(1 + t * t);
        for (double[][] both : new double[][][] {u, v}) {
            for (int k = 0; k < both[p].length; k++) {
                double x = both[p][k], y = both[q][k];
                both[p][k] = c * (x - t * y);
                both[q][k] = c * (t * x + y);
            }
        }
        return true;
    }

    private static double[] spread(Object value, int d) {
        if (value instanceof List) return Json.numbers(value);
        double[] found = new double[d];
        Arrays.fill(found, Json.number(value));
        return found;
    }

    private static double[] unknown(int d) {
        double[] found = new double[d];
        Arrays.fill(found, Double.NaN);
        return found;
    }

    private static double dot(double[] a, double[] b) {
        double sum = 0;
        for (int k = 0; k < a.length; k++) sum += a[k] * b[k];
        return sum;
    }
}
