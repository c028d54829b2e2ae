/** How many codewords a report chooses among, and how many of them are likely: public numbers. */

import { incompleteBeta, logBeta } from "./special.ts";

const NODES = 200;
const SIZES = Array.from({ length: 9 }, (_, k) => 16 << k);
const ENTRIES = 1 << 16;
const ENOUGH = 0.98;

type Angles = { sines: Float64Array; cosines: Float64Array; steps: Float64Array };

function remembered<T>(make: (...given: number[]) => T): (...given: number[]) => T {
  const kept = new Map<string, T>();
  return (...given) => {
    const key = given.join();
    if (!kept.has(key)) kept.set(key, make(...given));
    return kept.get(key)!;
  };
}

const angles = remembered((nodes): Angles => {
  const sines = new Float64Array(nodes);
  const cosines = new Float64Array(nodes);
  const steps = new Float64Array(nodes);
  const gap = 6 / (nodes - 1);
  for (let k = 0; k < nodes; k += 1) {
    const x = -3 + k * gap;
    const y = (Math.PI / 2) * Math.sinh(x);
    steps[k] = (gap * (Math.PI / 2) ** 2 * Math.cosh(x)) / (2 * Math.cosh(y) ** 2);
    sines[k] = Math.sin(Math.PI / 2 / (1 + Math.exp(-2 * y)));
    cosines[k] = Math.sin(Math.PI / 2 / (1 + Math.exp(2 * y)));
  }
  return { sines, cosines, steps };
});

/** Share of infinitely many codewords in the best cap, and its gain. */
const limitCap = remembered((dimension, epsilon, buckets): [number, number] => {
  const more = Math.expm1(epsilon!);
  if (dimension === 1) return [0.5, (0.5 * more) / (0.5 * more + buckets!)];
  const other = (dimension! - 1) / 2;
  const scale = Math.sqrt(dimension!) / (2 * other);
  let best: [number, number] = [0, -1];
  for (const sine of angles(8 * NODES).sines) {
    const share = incompleteBeta(other, 0.5, sine * sine) / 2;
    const first = Math.exp(2 * other * Math.log(sine) - logBeta(0.5, other)) * scale;
    const gain = (first * more) / (share * more + buckets!);
    if (gain > best[1]) best = [share, gain];
  }
  return best;
});

const projections = remembered((dimension, nodes) => {
  const { sines, cosines, steps } = angles(nodes!);
  const other = (dimension! - 1) / 2;
  const constant = logBeta(0.5, other);
  return {
    sizes: cosines.map((c) => Math.sqrt(dimension!) * c),
    above: sines.map((s) => incompleteBeta(other, 0.5, s * s)),
    mass: sines.map((s, k) => 2 * Math.exp((dimension! - 2) * Math.log(s) - constant) * steps[k]!),
  };
});

/** The expected sum of the s largest of B/2 sizes of projections on a line. */
const capSum = remembered((dimension, half, cap): number => {
  if (dimension === 1) return cap!;
  const { sizes, above, mass } = projections(dimension!, NODES + 16 * Math.floor(Math.sqrt(half!)));
  let sum = 0;
  for (let k = 0; k < sizes.length; k += 1) {
    const among = cap! < half! ? 1 - incompleteBeta(cap!, half! - cap!, above[k]!) : 1;
    sum += among * sizes[k]! * mass[k]!;
  }
  return sum * half!;
});

/** m, the mean of a sent codeword along the private direction. */
export function gain(size: number, dimension: number, epsilon: number, cap: number, buckets = 1): number {
  const more = Math.expm1(epsilon);
  return (capSum(dimension, size / 2, cap) * more) / (cap * more + buckets * size);
}

/** s, how many likely codewords make a report most informative. */
export function bestCap(size: number, dimension: number, given: number, buckets = 1): number {
  const epsilon = Math.min(given, 22);
  const half = size / 2;
  const worth = (cap: number) => gain(size, dimension, epsilon, cap, buckets);
  const [share] = limitCap(dimension, epsilon, buckets);
  let cap = Math.min(Math.max(Math.round(share * size), 1), half);
  while (cap < half && worth(cap + 1) > worth(cap)) cap += 1;
  while (cap > 1 && worth(cap - 1) >= worth(cap)) cap -= 1;
  return cap;
}

/** B, the smallest power of two that will do. */
export const codebookSize = remembered((dimension, given, buckets): number => {
  const epsilon = Math.min(given!, 22);
  const enough = Math.sqrt(ENOUGH) * limitCap(dimension!, epsilon, buckets!)[1];
  const sizes = SIZES.filter((size) => size === SIZES[0] || size * dimension! <= 2 * ENTRIES);
  let [from, to] = [0, sizes.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    const size = sizes[middle]!;
    const cap = bestCap(size, dimension!, epsilon, buckets!);
    if (gain(size, dimension!, epsilon, cap, buckets!) >= enough) to = middle;
    else from = middle + 1;
  }
  return sizes[Math.min(from, sizes.length - 1)]!;
});

/** L, the number of buckets with the least noise on the mean of a class. */
export const bestBuckets = remembered((dimension, given, classes): number => {
  const epsilon = Math.min(given!, 22);
  const tried = new Set([classes!]);
  for (let power = 1; power <= classes!; power *= 2) {
    for (const b of [power, power + (power >> 1)]) if (b <= classes!) tried.add(b);
  }
  let best = 0;
  let found = -1;
  for (const buckets of [...tried].sort((a, b) => a - b)) {
    const worth = buckets * limitCap(dimension!, epsilon, buckets)[1] ** 2;
    if (worth > found) [best, found] = [buckets, worth];
  }
  return best;
});
