/** Integers behind every draw: powers of e to any precision, and doubles nearest to fractions. */

/** Numerator and denominator of a finite double, exactly. */
export function fraction(value: number): [bigint, bigint] {
  let exponent = 0;
  let scaled = value;
  while (!Number.isInteger(scaled)) {
    scaled *= 2;
    exponent += 1;
  }
  return [BigInt(scaled), 1n << BigInt(exponent)];
}

/** The fraction that a number's shortest decimal text says: 0.1 is one tenth. */
export function decimal(value: number): [bigint, bigint] {
  const [, whole = "0", part = "", power = "0"] = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value)) ?? [];
  const places = BigInt(part.length) - BigInt(power);
  const digits = BigInt(whole + part);
  return places >= 0n ? [digits, 10n ** places] : [digits * 10n ** -places, 1n];
}

/** The double nearest to n/d, halves to even, for n ≥ 0 and d > 0. */
export function nearest(n: bigint, d: bigint): number {
  if (n === 0n) return 0;
  const shift = Math.max(0, 66 + bitLength(d) - bitLength(n));
  const scaled = n << BigInt(shift);
  const quotient = scaled / d;
  // A bit below all others says that something is left, so that no half is taken for one.
  const sticky = quotient * d === scaled ? 0n : 1n;
  return Number((quotient << 1n) | sticky) / 2 ** (shift + 1);
}

/** The largest double whose decimal text is not above n/d ≥ 0. */
export function roundedDown(n: bigint, d: bigint): number {
  const found = nearest(n, d);
  const [a, b] = decimal(found);
  return a * d <= n * b ? found : next(found, -1);
}

function next(value: number, step: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigInt64(0, view.getBigInt64(0) + BigInt(step));
  return view.getFloat64(0);
}

export function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length;
}

const HALVINGS = 32n;

/** e^(n/d) · 2^bits for n/d ≥ 0, less than 2^-100 of itself too small. */
export function exponential(n: bigint, d: bigint, bits: number): bigint {
  const room = 160 + Number((n * 3n) / (d * 2n));
  const one = 1n << BigInt(bits + room);
  const x = ((n * one) / d) >> HALVINGS;
  let term = one;
  let sum = one;
  for (let k = 1n; term > 0n; k += 1n) {
    term = (term * x) / one / k;
    sum += term;
  }
  for (let k = 0n; k < HALVINGS; k += 1n) sum = (sum * sum) / one;
  return sum >> BigInt(room);
}

const WIDE = 256;

/** ⌊of · e^-x⌋, for `of` below 2^64. */
export function faded(x: number, of: bigint): bigint {
  if (x > 64) return 0n;
  const [n, d] = fraction(x);
  return x === 0 ? of : (of << BigInt(2 * WIDE)) / (exponential(n, d, WIDE) + 1n) >> BigInt(WIDE);
}

/** ⌊denominator · e^ε⌋, and not below the denominator; beyond 22 the truth is all but certain. */
export function odds(epsilon: number, denominator: bigint): bigint {
  const [n, d] = fraction(Math.min(epsilon, 22));
  const found = (exponential(n, d, WIDE) * denominator) >> BigInt(WIDE);
  return found > denominator ? found : denominator;
}

/** Weights of likely and other outcomes, as fine as sums up to 2^bits allow: [high, low]. */
export function weights(epsilon: number, likely: bigint, others: bigint, bits = 62): [bigint, bigint] {
  const total = likely * odds(epsilon, 1n << 64n) + (others << 64n);
  const low = 1n << BigInt(bits + 64 - bitLength(total - 1n));
  return [odds(epsilon, low), low];
}
