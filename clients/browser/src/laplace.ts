/** Noise on the integers with P(k) ∝ e^(-|k|/scale), exactly: digit by digit, by inversion. */

import { exponential } from "./exact.ts";
import { signs, type Source } from "./words.ts";

const BASE = 256;

/** Increasing probabilities, known to any precision: ⌊c · 2^bits⌋ of each. */
type Table = (bits: number) => bigint[];

const kept = new Map<string, Table>();

function digitTable(step: bigint, scale: bigint, closed: boolean): Table {
  const key = `${step}/${scale}/${closed}`;
  const known = kept.get(key);
  if (known) return known;
  const found = new Map<number, bigint[]>();
  const table = (bits: number): bigint[] => {
    let values = found.get(bits);
    if (!values) found.set(bits, (values = probabilities(step, scale, closed, bits)));
    return values;
  };
  kept.set(key, table);
  return table;
}

function probabilities(step: bigint, scale: bigint, closed: boolean, bits: number): bigint[] {
  const wide = BigInt(bits + 200);
  const unit = 1n << wide;
  const ratio = (unit * unit) / exponential(step, scale, Number(wide));
  const powers = [unit];
  for (let k = 1; k <= BASE; k += 1) powers.push((powers[k - 1]! * ratio) >> wide);
  const total = closed ? unit - powers[BASE]! : unit;
  const last = closed ? BASE : BASE + 1;
  return powers.slice(1, last).map((power) => ((unit - power) << BigInt(bits)) / total);
}

/** For fresh uniforms, how many probabilities are at most each. */
function countBelow(table: Table, size: number, source: Source): number[] {
  const edges = table(64);
  const words = source.words(size);
  return words.map((word) => {
    let [from, to] = [0, edges.length]; // the first edge that is not below the word
    while (from < to) {
      const middle = (from + to) >> 1;
      if (edges[middle]! < word) from = middle + 1;
      else to = middle;
    }
    return from < edges.length && edges[from] === word ? -1 : from;
  }).map((found, row) => (found < 0 ? refined(table, words[row]!, source) : found));
}

/** The same for a word that its first 64 digits do not tell from an edge: it is continued. */
function refined(table: Table, word: bigint, source: Source): number {
  let uniform = word;
  for (let bits = 128; ; bits += 64) {
    uniform = (uniform << 64n) | source.words(1)[0]!;
    const edges = table(bits);
    if (!edges.includes(uniform)) return edges.filter((edge) => edge < uniform).length;
  }
}

export function discreteLaplace(size: number, scale: bigint, source: Source): bigint[] {
  const found = geometric(size, scale, source);
  signs(size, source).forEach((sign, k) => (found[k] = found[k]! * BigInt(sign)));
  const zeros = found.flatMap((value, place) => (value === 0n ? [place] : []));
  if (zeros.length) {
    // Zero would be counted for both signs: one of its two readings is drawn again.
    const coins = signs(zeros.length, source);
    const again = zeros.filter((_, k) => coins[k]! < 0);
    if (again.length) discreteLaplace(again.length, scale, source).forEach((v, k) => (found[again[k]!] = v));
  }
  return found;
}

function geometric(size: number, scale: bigint, source: Source): bigint[] {
  const total = Array.from({ length: size }, () => 0n);
  let step = 1n;
  for (; step * BigInt(BASE) <= scale; step *= BigInt(BASE)) {
    const digits = countBelow(digitTable(step, scale, true), size, source);
    digits.forEach((digit, k) => (total[k] = total[k]! + BigInt(digit) * step));
  }
  const last = digitTable(step, scale, false);
  unbounded(size, last, source).forEach((digit, k) => (total[k] = total[k]! + BigInt(digit) * step));
  return total;
}

function unbounded(size: number, table: Table, source: Source): number[] {
  const digits = countBelow(table, size, source);
  const beyond = digits.flatMap((digit, place) => (digit === BASE ? [place] : []));
  if (beyond.length) {
    unbounded(beyond.length, table, source).forEach((more, k) => (digits[beyond[k]!] = digits[beyond[k]!]! + more));
  }
  return digits;
}
