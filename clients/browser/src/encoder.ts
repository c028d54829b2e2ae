/** One curve, from what a person holds to a vector in [-1, 1]^d. Never refuses: that would tell. */

import { channels, domain, evaluate, inTurns, size, type Basis } from "./basis.ts";
import { leastSquares } from "./least_squares.ts";

export type Column = { key: string | number; low: number; high: number; categories: unknown[] };
export type Encoder = {
  basis: Basis;
  rescale: { name: string; scale?: number | number[]; center?: number | number[] };
  table?: { columns: Column[]; named: boolean };
};
/** Values at points; without points, equally spaced over the domain. NaN: not seen. */
export type Curve = { points?: number[] | null; values: number[] | number[][] | unknown[] };

/** z*, always inside the box; what is unknown is 0. */
export function encode(encoder: Encoder, curve: Curve): number[] {
  const d = size(encoder.basis);
  const centers = spread(encoder.rescale.center ?? 0, d);
  const z = coefficients(encoder, curve, d).map((value, k) => (Number.isNaN(value) ? centers[k]! : value));
  return squashed(encoder, z, centers).map((value) => (Number.isNaN(value) ? 0 : Math.min(Math.max(value, -1), 1)));
}

/** How many of the features lie outside the public range, whose edge then counts, and of how many. */
export function outside(encoder: Encoder, curve: Curve): [number, number] {
  const d = size(encoder.basis);
  if (encoder.rescale.name !== "clip") return [0, d]; // others bend what is large, as everybody's
  const centers = spread(encoder.rescale.center ?? 0, d);
  const scales = spread(encoder.rescale.scale ?? 1, d);
  const rounding = 1 + 1e-9; // of least squares: a curve along the edge lies inside
  const z = encoder.table ? clippedNever(encoder.table.columns, curve.values) : coefficients(encoder, curve, d);
  return [z.filter((x, k) => Math.abs(x - centers[k]!) > scales[k]! * rounding).length, d];
}

function clippedNever(columns: Column[], cells: unknown[]): number[] {
  return tableRow(columns.map((column) => ({ ...column, low: -Infinity, high: Infinity })), cells);
}

/** The curve that features stand for at points of the domain; noise beyond the box is cut. */
export function drawn(encoder: Encoder, features: number[], points: number[]): number[] {
  const { name, scale = 1, center = 0 } = encoder.rescale;
  const [scales, centers] = [spread(scale, features.length), spread(center, features.length)];
  const z = features.map((x, k) => {
    const inside = Math.min(Math.max(x, -1), 1) * (1 - 1e-9);
    if (name === "max_abs") return inside; // its shape is all that is known
    return centers[k]! + scales[k]! * (name === "tanh" ? Math.atanh(inside) : inside);
  });
  return points.map((t) => evaluate(encoder.basis, t).reduce((sum, value, k) => sum + value * z[k]!, 0));
}

function coefficients(encoder: Encoder, curve: Curve, d: number): number[] {
  const nothing = new Array<number>(d).fill(NaN);
  if (encoder.table) return tableRow(encoder.table.columns, curve.values);
  if (encoder.basis.name === "identity") {
    const row = curve.values as number[];
    return row.length === d && row.every((x) => Math.abs(x) !== Infinity) ? row.map(Number) : nothing;
  }
  const parts = channels(encoder.basis);
  return inTurns(parts.map((part, c) => {
    const values = parts.length === 1
      ? (curve.values as number[])
      : (curve.values as number[][]).map((row) => (row?.length === parts.length ? row[c]! : NaN));
    return projected(part, curve.points ?? null, values);
  }));
}

function projected(basis: Basis, points: number[] | null, values: number[]): number[] {
  const [low, high] = domain(basis);
  const n = values.length;
  const nothing = new Array<number>(size(basis)).fill(NaN);
  if (points !== null && points.length !== n) return nothing;
  if (values.some((x) => Math.abs(x) === Infinity)) return nothing;
  const slack = 1e-9 * (high - low);
  const rows: number[][] = [];
  const seen: number[] = [];
  values.forEach((x, k) => {
    const t = points ? points[k]! : n === 1 ? low : low + ((high - low) * k) / (n - 1);
    if (Number.isNaN(x) || !(t >= low - slack && t <= high + slack)) return;
    rows.push(evaluate(basis, t));
    seen.push(x);
  });
  if (seen.length === 0) return nothing;
  // At size 1, so that no curve is too large to be multiplied.
  const largest = seen.reduce((most, x) => Math.max(most, Math.abs(x)), 0) || 1;
  const most = Number.MAX_VALUE;
  return leastSquares(rows, seen.map((x) => x / largest)).map((z) => Math.min(Math.max(z * largest, -most), most));
}

function tableRow(columns: Column[], cells: unknown[]): number[] {
  return columns.flatMap((column, k) => {
    const cell = cells[k];
    if (column.categories.length) return column.categories.map((category) => (cell === category ? 1 : 0));
    const value = typeof cell === "number" || typeof cell === "boolean" || (typeof cell === "string" && cell.trim()) ? Number(cell) : NaN;
    return [Number.isNaN(value) ? NaN : Math.min(Math.max(value, column.low), column.high)];
  });
}

function squashed(encoder: Encoder, z: number[], centers: number[]): number[] {
  if (encoder.rescale.name === "max_abs") {
    const largest = z.reduce((most, x) => Math.max(most, Math.abs(x)), 0) || 1;
    return z.map((x) => x / largest);
  }
  const scales = spread(encoder.rescale.scale ?? 1, z.length);
  const standard = z.map((x, k) => (x - centers[k]!) / scales[k]!);
  return encoder.rescale.name === "tanh" ? standard.map(Math.tanh) : standard;
}

function spread(value: number | number[], d: number): number[] {
  return Array.isArray(value) ? value : new Array<number>(d).fill(value);
}
