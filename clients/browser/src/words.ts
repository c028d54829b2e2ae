/** Random words, and the exact draws that everything else is made of. */

/** A stream of independent uniform 64-bit words. */
export interface Source {
  words(count: number): bigint[];
}

/** Words of the device's own cryptographic generator: eight bytes each, the first the lowest. */
export const secure: Source = {
  words(count: number): bigint[] {
    const found = new BigUint64Array(count);
    const most = 8192; // words in one call: 65536 bytes
    for (let at = 0; at < count; at += most) crypto.getRandomValues(found.subarray(at, at + most));
    return [...found];
  },
};

/** 32 bytes of that generator, as hexadecimal digits: a reply's secret, which stays here until the reply is withdrawn. */
export function newSecret(): string {
  return hexadecimal(crypto.getRandomValues(new Uint8Array(32)));
}

/** The nonce of a reply: what makes a message one that nobody can make again, and does not tell the secret. */
export async function nonceOf(secret: string): Promise<string> {
  const bytes = Uint8Array.from(secret.match(/../g) ?? [], (digits) => parseInt(digits, 16));
  return hexadecimal(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).subarray(0, 16));
}

export function hexadecimal(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const WORD = 1n << 64n;

/** Integers, uniform on {0, …, bound - 1}. */
export function below(bound: bigint, size: number, source: Source): bigint[] {
  const words = source.words(size);
  const last = WORD - 1n - (WORD % bound);
  for (;;) {
    const rejected = words.flatMap((word, place) => (word > last ? [place] : []));
    if (rejected.length === 0) break;
    source.words(rejected.length).forEach((word, k) => (words[rejected[k]!] = word));
  }
  return words.map((word) => word % bound);
}

/** One of them. */
export function one(bound: bigint, source: Source): bigint {
  return below(bound, 1, source)[0]!;
}

/** Fair signs, 64 from each word: bytes from the lowest, bits of each from the highest. */
export function signs(size: number, source: Source): number[] {
  const words = source.words(Math.ceil(size / 64));
  return Array.from({ length: size }, (_, k) => {
    const byte = (words[k >> 6]! >> BigInt(8 * ((k >> 3) & 7))) & 255n;
    return (byte >> BigInt(7 - (k & 7))) & 1n ? 1 : -1;
  });
}

/** `choose` of `among` places, in random order. */
export function subset(choose: number, among: number, source: Source): number[] {
  for (;;) {
    const keys = source.words(among);
    const order = keys.map((_, place) => place);
    order.sort((a, b) => (keys[a]! < keys[b]! ? -1 : keys[a]! > keys[b]! ? 1 : 0));
    if (order.every((place, k) => k === 0 || keys[place] !== keys[order[k - 1]!])) return order.slice(0, choose);
  }
}
