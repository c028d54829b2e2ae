/** Canonical JSON (RFC 8785) and the hash that names a study. */

import { hexadecimal } from "./words.ts";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** One text for one value: members sorted, numbers as this language writes them. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const names = Object.keys(value).sort(); // by UTF-16 units, as the standard says
    return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name]!)}`).join(",")}}`;
  }
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError("not a finite number");
  return JSON.stringify(value);
}

/** SHA-256 of the canonical JSON, in 64 hexadecimal digits. */
export async function hashOf(value: Json): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical(value)));
  return hexadecimal(new Uint8Array(digest));
}
