/** The solution of least squares of smallest norm, by one-sided Jacobi rotations. */

const EPS = 2 ** -52;

/**
 * z with the smallest ‖z‖ among those with the smallest ‖A z - x‖; A is given by its rows.
 * Singular values below 2^-52 max(rows, columns) times the largest count as 0.
 */
export function leastSquares(rows: number[][], x: number[]): number[] {
  const d = rows[0]!.length;
  const wide = rows.length < d;
  // Columns of A, or of its transpose where that has fewer: rotated until they are orthogonal.
  const u = wide ? rows.map((row) => [...row]) : transposed(rows);
  const v = u.map((_, i) => u.map((__, j) => (i === j ? 1 : 0)));
  for (let sweep = 0; sweep < 60; sweep += 1) {
    let turned = false;
    for (let p = 0; p < u.length - 1; p += 1) {
      for (let q = p + 1; q < u.length; q += 1) turned = rotated(u, v, p, q) || turned;
    }
    if (!turned) break;
  }
  const sizes = u.map((column) => Math.sqrt(dot(column, column)));
  const cutoff = EPS * Math.max(rows.length, d) * Math.max(...sizes);
  // A = Σ u_k v_kᵀ with |u_k| = s_k (transposed where wide), so A⁺ x = Σ v_k (u_k·x)/s_k².
  const z = new Array<number>(d).fill(0);
  sizes.forEach((size, k) => {
    if (size <= cutoff) return;
    const [towards, along] = wide ? [u[k]!, v[k]!] : [v[k]!, u[k]!];
    const weight = dot(along, x) / size / size;
    for (let j = 0; j < d; j += 1) z[j]! += weight * towards[j]!;
  });
  return z;
}

function rotated(u: number[][], v: number[][], p: number, q: number): boolean {
  const [a, b] = [u[p]!, u[q]!];
  const [alpha, beta, gamma] = [dot(a, a), dot(b, b), dot(a, b)];
  if (gamma === 0 || Math.abs(gamma) <= 1e-16 * Math.sqrt(alpha * beta)) return false;
  const zeta = (beta - alpha) / (2 * gamma);
  const t = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.sqrt(1 + zeta * zeta));
  const c = 1 / Math.sqrt(1 + t * t);
  for (const [x, y] of [[a, b], [v[p]!, v[q]!]] as const) {
    for (let k = 0; k < x.length; k += 1) [x[k], y[k]] = [c * (x[k]! - t * y[k]!), c * (t * x[k]! + y[k]!)];
  }
  return true;
}

function transposed(rows: number[][]): number[][] {
  return rows[0]!.map((_, j) => rows.map((row) => row[j]!));
}

function dot(a: number[], b: number[]): number {
  let sum = 0;
  for (let k = 0; k < a.length; k += 1) sum += a[k]! * b[k]!;
  return sum;
}
