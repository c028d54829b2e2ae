/** One codeword of a public codebook, chosen near a private direction. */

import { weights } from "./exact.ts";
import { rint } from "./mechanisms.ts";
import { bestBuckets, bestCap, codebookSize } from "./sizes.ts";
import { one, type Source } from "./words.ts";

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;
const SIGNS = 0xa24baed4963ee407n;
const CLASSES = 0xd1b54a32d192ed03n;
const BOOKS = 1n << 48n;
const WIDTH = 1 << 20;

/** The output function of SplitMix64. */
function mixed(state: bigint): bigint {
  let z = state & MASK;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return z ^ (z >> 31n);
}

function horner(x: number, coefficients: number[]): number {
  let found = coefficients[coefficients.length - 1]!;
  for (let k = coefficients.length - 2; k >= 0; k -= 1) found = found * x + coefficients[k]!;
  return found;
}

const ODD = [1, 3, 5, 7, 9, 11, 13].map((k) => 1 / k);
const FACTORIAL = Array.from({ length: 12 }, () => 1);
for (let k = 1; k < 12; k += 1) FACTORIAL[k] = k * FACTORIAL[k - 1]!;
const COSINE = [0, 1, 2, 3, 4, 5].map((k) => (-1) ** k / FACTORIAL[2 * k]!);
const SINE = [0, 1, 2, 3, 4, 5].map((k) => (-1) ** k / FACTORIAL[2 * k + 1]!);

/** log(x/2^32), each step rounded as IEEE 754 says: no library decides. */
function logarithm(x: number): number {
  let power = 0;
  let part = x;
  while (part >= 1) {
    part /= 2;
    power += 1;
  }
  if (part < Math.SQRT1_2) {
    part *= 2;
    power -= 1;
  }
  const ratio = (part - 1) / (part + 1);
  return 2 * ratio * horner(ratio * ratio, ODD) + (power - 32) * Math.LN2;
}

function turned(turns: number): [number, number] {
  const quarter = Math.floor(4 * turns + 0.5);
  const angle = (turns - quarter / 4) * (2 * Math.PI);
  const square = angle * angle;
  const cosine = horner(square, COSINE);
  const sine = angle * horner(square, SINE);
  const odd = quarter % 2 === 1;
  const first = (quarter + 1) % 4 < 2 ? 1 : -1;
  const second = quarter % 4 < 2 ? 1 : -1;
  return [first * (odd ? sine : cosine), second * (odd ? cosine : sine)];
}

/** One row of a public matrix, in steps of 2^-12. */
function matrixRow(matrix: bigint, row: number, columns: number): number[] {
  const pairs = Math.ceil(columns / 2);
  const start = mixed(matrix * GOLDEN + 1n);
  const found = new Array<number>(2 * pairs);
  for (let step = 1; step <= pairs; step += 1) {
    const bits = mixed(BigInt(row * pairs + step) * GOLDEN + start);
    const radius = Math.sqrt(-2 * logarithm(Number(bits & 0xffffffffn) + 0.5));
    const [cosine, sine] = turned(Number(bits >> 32n) * 2 ** -32);
    found[step - 1] = rint(4096 * (radius * cosine));
    found[pairs + step - 1] = rint(4096 * (radius * sine));
  }
  const entries: number[] = found.slice(0, columns);
  if (!entries.some(Boolean)) entries[0] = 1;
  return entries;
}

/** Where each of the B/2 axes of a codebook lies along a direction. */
function scores(direction: number[], book: bigint, half: number): number[] {
  const columns = direction.length;
  const wanted = Math.min(
    Math.max(64, Math.floor(2 ** 22 / columns ** 3)),
    Math.max(1, Math.floor(2 ** 23 / (half * (columns + 2)))),
  );
  const count = BigInt(2 ** Math.floor(Math.log2(wanted)));
  const shift = Number((book / count) % BigInt(columns));
  const start = mixed(book ^ SIGNS);
  const placed = new Array<number>(columns);
  let word = 0n;
  for (let j = 0; j < columns; j += 1) {
    if (j % 64 === 0) word = mixed(start + BigInt(j / 64 + 1) * SIGNS);
    const sign = (word >> BigInt(j % 64)) & 1n ? -1 : 1;
    placed[(j + shift) % columns] = sign * rint(direction[j]! * WIDTH);
  }
  return Array.from({ length: half }, (_, row) => {
    const entries = matrixRow(book % count, row, columns);
    let [product, square] = [0, 0];
    for (let j = 0; j < columns; j += 1) {
      product += entries[j]! * placed[j]!;
      square += entries[j]! * entries[j]!;
    }
    return product / Math.fround(Math.sqrt(square));
  });
}

/** The codeword with this rank: the cap, its opposites, then the other pairs. */
function wordAt(rank: number, cap: number, direction: number[], book: bigint, size: number): number {
  const half = size / 2;
  const along = scores(direction, book, half);
  const order = along.map((_, axis) => axis);
  order.sort((a, b) => Math.abs(along[b]!) - Math.abs(along[a]!) || a - b);
  const byNumber = (axes: number[]) => axes.sort((a, b) => a - b);
  const near = rank < 2 * cap;
  const axes = near ? byNumber(order.slice(0, cap)) : byNumber(order.slice(cap));
  const place = near ? rank % cap : (rank - 2 * cap) >> 1;
  const flipped = near ? rank >= cap : (rank - 2 * cap) % 2 === 1;
  const axis = axes[place]!;
  return axis + (along[axis]! < 0 !== flipped ? half : 0);
}

type Choice = { epsilon: number; codewords: number; cap: number; buckets: number };

function drawn(vector: number[], choice: Choice, source: Source) {
  const finite = vector.map((x) => (Number.isFinite(x) ? x : 0));
  let length = norm(finite);
  const inside = length > 1 ? finite.map((x) => x / length) : finite;
  length = norm(inside);
  let direction = inside.map((x) => x / length);
  if (!direction.every(Number.isFinite)) direction = inside.map((_, j) => (j ? 0 : 1));
  const told = rint(Math.min(length, 1) * WIDTH);
  const around = one(2n * BigInt(WIDTH), source) >= BigInt(WIDTH + told);
  const book = one(BOOKS, source);
  const [cap, words] = [BigInt(choice.cap), BigInt(choice.buckets * choice.codewords)];
  const [high, low] = weights(choice.epsilon, cap, words);
  const coin = one(cap * high + (words - cap) * low, source);
  const likely = cap * high;
  const rank = Number(coin < likely ? coin / high : cap + (coin - likely) / low);
  return { direction, around, book, rank };
}

function norm(vector: number[]): number {
  return Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
}

/** (number of the codebook, number of the codeword) of a vector of the unit ball. */
export function capIndex(vector: number[], source: Source, choice: Omit<Choice, "buckets">): number[] {
  const { direction, around, book, rank } = drawn(vector, { ...choice, buckets: 1 }, source);
  const aimed = around ? direction.map((x) => -x) : direction;
  return [Number(book), wordAt(rank, choice.cap, aimed, book, choice.codewords)];
}

/** The same for a class and a vector. */
export function classIndex(own: number, vector: number[], source: Source, classes: number, choice: Choice): number[] {
  const { direction, around, book, rank } = drawn(vector, choice, source);
  const [bucket, sign] = place(own, book, classes, choice.buckets);
  const factor = around ? -sign : sign;
  const size = choice.codewords;
  const word = wordAt(rank % size, choice.cap, direction.map((x) => x * factor), book, size);
  return [Number(book), word + ((bucket + Math.floor(rank / size)) % choice.buckets) * size];
}

/** Bucket and sign of a class in a codebook. */
function place(own: number, book: bigint, classes: number, buckets: number): [number, number] {
  if (buckets === classes) return [own, 1];
  const start = mixed(book ^ CLASSES);
  const bits = Array.from({ length: classes }, (_, k) => mixed(start + BigInt(k + 1) * CLASSES));
  const sign = bits[own]! >> 63n ? 1 : -1;
  const keys = bits.map((word) => (word << 1n) & MASK);
  const rank = keys.filter((key) => key < keys[own]!).length;
  return [rank % buckets, sign];
}

/** The most informative report of a vector. */
export function bestCapIndex(epsilon: number, dimension: number): Omit<Choice, "buckets"> {
  const codewords = codebookSize(dimension, epsilon, 1);
  return { epsilon, codewords, cap: bestCap(codewords, dimension, epsilon) };
}

/** The same of a class and a vector. */
export function bestClassIndex(epsilon: number, dimension: number, classes: number): Choice {
  const buckets = bestBuckets(dimension, epsilon, classes);
  const codewords = codebookSize(dimension, epsilon, buckets);
  return { epsilon, codewords, cap: bestCap(codewords, dimension, epsilon, buckets), buckets };
}
