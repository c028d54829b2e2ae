/** The functions in which every curve of a study is written. */

export type Basis = {
  name: string;
  n_basis?: number;
  domain_range?: [number, number];
  order?: number;
  knots?: number[] | null;
  points?: number[];
  values?: number[][];
  parts?: Basis[];
};

/** The basis of each channel of a curve. */
export function channels(basis: Basis): Basis[] {
  return basis.parts ?? [basis];
}

/** d, how many functions there are. */
export function size(basis: Basis): number {
  if (basis.parts) return basis.parts.reduce((sum, part) => sum + size(part), 0);
  if (basis.values) return basis.values[0]!.length;
  return basis.n_basis!;
}

export function domain(basis: Basis): [number, number] {
  const first = channels(basis)[0]!;
  return first.points ? [first.points[0]!, first.points[first.points.length - 1]!] : first.domain_range!;
}

/** Numbers of each channel's functions in turns: the first of every channel, then the second ones. */
export function inTurns(parts: number[][]): number[] {
  const longest = Math.max(...parts.map((part) => part.length));
  const found: number[] = [];
  for (let k = 0; k < longest; k += 1) for (const part of parts) if (k < part.length) found.push(part[k]!);
  return found;
}

/** All functions at one point of the domain. */
export function evaluate(basis: Basis, t: number): number[] {
  const [low, high] = domain(basis);
  const point = Math.min(Math.max(t, low), high);
  const unit = (point - low) / (high - low);
  switch (basis.name) {
    case "cosine":
    case "fourier":
    case "smooth":
      return Array.from({ length: basis.n_basis! }, (_, k) => wave(basis.name, unit, k) / Math.sqrt(high - low));
    case "bspline":
      return splines(basis, point);
    case "custom":
      return tabulated(basis, point);
    default:
      throw new Error("a plan's basis is checked before");
  }
}

function wave(name: string, unit: number, k: number): number {
  if (k === 0) return 1;
  if (name === "smooth") return swing(2 * unit - 1, k);
  if (name === "cosine") return Math.SQRT2 * Math.cos(Math.PI * unit * k);
  const angle = 2 * Math.PI * unit * Math.floor((k + 1) / 2);
  return Math.SQRT2 * (k % 2 === 1 ? Math.sin(angle) : Math.cos(angle));
}

/** The shapes in which a free rod swings, on [-1, 1]: a line, then waves, even for even k. */
function swing(x: number, k: number): number {
  if (k === 1) return Math.sqrt(3) * x;
  const half = Math.PI * Math.floor(k / 2);
  let m = half;
  for (let step = 0; step < 20; step += 1) m = half + (k % 2 ? 1 : -1) * Math.atan(Math.tanh(m));
  return k % 2
    ? Math.sin(m * x) / Math.sin(m) + Math.sinh(m * x) / Math.sinh(m)
    : Math.cos(m * x) / Math.cos(m) + Math.cosh(m * x) / Math.cosh(m);
}

function splines(basis: Basis, t: number): number[] {
  const [low, high] = basis.domain_range!;
  const order = basis.order!;
  const inner = basis.n_basis! - order;
  const even = Array.from({ length: inner }, (_, k) => low + ((high - low) * (k + 1)) / (inner + 1));
  const ends = [low, ...(basis.knots ?? even), high];
  const knots = [...Array(order - 1).fill(low), ...ends, ...Array(order - 1).fill(high)] as number[];
  let last = order - 1; // the interval that t lies in; the last one is closed
  while (last < basis.n_basis! - 1 && t >= knots[last + 1]!) last += 1;
  let values = knots.slice(1).map((_, k): number => (k === last ? 1 : 0));
  for (let degree = 1; degree < order; degree += 1) {
    values = values.slice(1).map((_, k) => {
      const left = knots[k + degree]! - knots[k]!;
      const right = knots[k + degree + 1]! - knots[k + 1]!;
      const rising = left > 0 ? ((t - knots[k]!) / left) * values[k]! : 0;
      return rising + (right > 0 ? ((knots[k + degree + 1]! - t) / right) * values[k + 1]! : 0);
    });
  }
  return values;
}

function tabulated(basis: Basis, t: number): number[] {
  const points = basis.points!;
  let at = 0;
  while (at < points.length - 2 && t > points[at + 1]!) at += 1;
  const weight = (t - points[at]!) / (points[at + 1]! - points[at]!);
  return basis.values![at]!.map((value, j) => value + weight * (basis.values![at + 1]![j]! - value));
}
