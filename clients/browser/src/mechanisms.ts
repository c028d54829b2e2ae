/** What a person's values go through: each function is one file of the Python package, to the bit. */

import { faded, fraction, nearest, odds, weights } from "./exact.ts";
import { discreteLaplace } from "./laplace.ts";
import { below, one, signs, subset, type Source } from "./words.ts";

const COIN = 1n << 30n;
const HALF_WIDTH = 1 << 20;
const MIXTURE = 1n << 32n;

/** A sign: the truth with odds e^ε. */
export function randomizedResponse(epsilon: number, sign: number, source: Source): number {
  const keep = odds(epsilon, COIN);
  return one(keep + COIN, source) < keep ? sign : -sign;
}

/** Several signs at once: all true, or all random. */
export function questionResponse(epsilon: number, answers: number[], source: Source): number[] {
  const patterns = 1n << BigInt(answers.length);
  const [high, low] = weights(epsilon, 1n, patterns, 61);
  const truthful = one(high - low + patterns * low, source) < high - low;
  const random = signs(answers.length, source);
  return truthful ? answers : random;
}

export type BoxMechanism = "laplace" | "piecewise" | "duchi" | "hybrid";

/** A vector of [-1, 1]^d through the mechanism of this name. */
export function boxMechanism(name: BoxMechanism, epsilon: number, vector: number[], source: Source): number[] {
  const inside = vector.map((x) => Math.min(Math.max(x, -1), 1));
  if (name === "laplace") return laplace(epsilon, inside, source);
  const places = inside.map((x) => BigInt(rint(x * HALF_WIDTH)));
  if (name === "duchi") return duchi(epsilon, places, source);
  const scalar = name === "piecewise" ? piecewiseDraws : hybridDraws;
  return sampled(scalar, epsilon, places, source);
}

/** The nearest integer, halves to even. */
export function rint(value: number): number {
  const down = Math.floor(value);
  const rest = value - down;
  return rest < 0.5 || (rest === 0.5 && down % 2 === 0) ? down : down + 1;
}

function laplace(epsilon: number, vector: number[], source: Source): number[] {
  const reach = (2 * vector.length) / epsilon;
  const step = Math.min(2 ** (exponent(reach) - 21), 1);
  const [n, d] = fraction(epsilon);
  const [a, b] = fraction(step);
  const top = BigInt(2 * vector.length) * d * b;
  const scale = (top + n * a - 1n) / (n * a); // rounded up, exactly
  const noise = discreteLaplace(vector.length, scale, source);
  return vector.map((x, k) => Number(BigInt(rint(x / step)) + noise[k]!) * step);
}

/** e with value = f · 2^e and ½ ≤ f < 1. */
function exponent(value: number): number {
  let found = Math.floor(Math.log2(value)) + 1;
  while (2 ** found <= value) found += 1;
  while (2 ** (found - 1) > value) found -= 1;
  return found;
}

type Scalar = (epsilon: number, places: bigint[], source: Source) => number[];

function sampled(draws: Scalar, epsilon: number, places: bigint[], source: Source): number[] {
  const d = places.length;
  const k = Math.max(1, Math.min(d, Math.floor(epsilon / 2.5)));
  if (k === d) return draws(epsilon / k, places, source);
  const chosen = subset(k, d, source);
  const told = draws(epsilon / k, chosen.map((j) => places[j]!), source);
  const report = places.map(() => 0);
  chosen.forEach((j, m) => (report[j] = (d / k) * told[m]!));
  return report;
}

function piecewiseDraws(epsilon: number, places: bigint[], source: Source): number[] {
  const wide = BigInt(HALF_WIDTH);
  const half = faded(epsilon / 2, wide) || 1n;
  const window = 2n * half;
  const [high, low] = weights(epsilon, window, 2n * wide);
  const likely = window * high;
  const total = likely + 2n * wide * low;
  const unit = nearest(total, (high - low) * window * wide);
  return below(total, places.length, source).map((coin, k) => {
    const start = places[k]! - half;
    if (coin < likely) return (Number(start + coin / high) + 0.5) * unit;
    const outside = (coin - likely) / low - wide - half;
    return (Number(outside >= start ? outside + window : outside) + 0.5) * unit;
  });
}

function up(places: bigint[], source: Source): number[] {
  const wide = BigInt(HALF_WIDTH);
  return below(2n * wide, places.length, source).map((coin, k) => (coin < places[k]! + wide ? 1 : -1));
}

function duchiDraws(epsilon: number, places: bigint[], source: Source): number[] {
  const high = odds(epsilon, COIN);
  const bound = nearest(high + COIN, high - COIN);
  const corners = up(places, source);
  const coins = below(high + COIN, places.length, source);
  return corners.map((corner, k) => bound * (coins[k]! < high ? corner : -corner));
}

function hybridDraws(epsilon: number, places: bigint[], source: Source): number[] {
  const share = epsilon <= 0.61 ? 0n : MIXTURE - faded(epsilon / 2, MIXTURE);
  const first = below(MIXTURE, places.length, source).map((coin) => coin < share);
  const ones = piecewiseDraws(epsilon, places.filter((_, k) => first[k]), source);
  const others = duchiDraws(epsilon, places.filter((_, k) => !first[k]), source);
  return first.map((isFirst) => (isFirst ? ones.shift()! : others.shift()!));
}

function duchi(epsilon: number, places: bigint[], source: Source): number[] {
  const d = places.length;
  const high = odds(epsilon, COIN);
  const ties = d % 2 === 0 ? choose(d, d / 2) : 0n;
  const total = (((1n << BigInt(d)) - ties) / 2n) * (high + COIN) + ties * COIN;
  const bound = nearest(total, (high - COIN) * choose(d - 1, Math.floor(d / 2)));
  const corner = up(places, source);
  for (;;) {
    const proposal = signs(d, source);
    const agree = proposal.reduce((sum, sign, j) => sum + sign * corner[j]!, 0) > 0;
    const coin = one(high, source);
    if (agree || coin < COIN) return proposal.map((sign) => bound * sign);
  }
}

function choose(n: number, k: number): bigint {
  let found = 1n;
  for (let j = 1; j <= k; j += 1) found = (found * BigInt(n - k + j)) / BigInt(j);
  return found;
}
