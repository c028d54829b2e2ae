/** Measurements in JSON (Fitbit, Google Fit, Oura): lists of objects that have a time and numbers. */

import { inWords } from "./series.ts";
import { readTime, unixTime, type Zone } from "./times.ts";
import { Unreadable } from "./unreadable.ts";
import type { Collected } from "./xml.ts";

const DEEPEST = 12;
const MOST_FIELDS = 5_000; // of one object
const TIME = /^(date_?time|timestamp|time|start_?time(nanos|millis)?|start(_?date)?|date|day|bedtime_start)$/i;
const OTHER_TIME = /time|date|nanos|millis|stamp|(^|_)end|offset/i;
const IDENTITY = /(^|[ _])(u?u?id|version|confidence|latitude|longitude|lat|lon|lng)$/i;

/**
 * Refuse a text in which an object has too many fields, before it is parsed: an object of a million
 * names takes seconds. Only colons outside of strings are counted, so that any text can be given.
 */
export function refuseWide(text: string): void {
  const counts: number[] = []; // of each object and list that is open
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = endOfString(text, at);
    else if (code === 0x7b || code === 0x5b) counts.push(0);
    else if (code === 0x7d || code === 0x5d) counts.pop();
    else if (code === 0x3a && counts.length > 0 && (counts[counts.length - 1]! += 1) > MOST_FIELDS) {
      throw new Unreadable("file.wide", { most: MOST_FIELDS });
    }
  }
}

/** Where the string ends that begins here: a quote after an odd number of backslashes is part of it. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (text.charCodeAt(before - 1) === 0x5c) before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return text.length;
}

/** All measurements of a document. */
export function readJson(document: unknown, found: Collected, zone: Zone): void {
  walk(document, [], found, zone, firstDate(document, 0), 0);
}

function walk(node: unknown, path: string[], found: Collected, zone: Zone, day: string, depth: number): void {
  if (depth > DEEPEST || node === null || typeof node !== "object") return;
  if (!Array.isArray(node)) {
    for (const key in node) {
      const value = (node as Record<string, unknown>)[key];
      if (value !== null && typeof value === "object") walk(value, [...path, key], found, zone, day, depth + 1);
    }
    return;
  }
  for (const row of node) {
    if (!measured(row, path, found, zone, day)) walk(row, path, found, zone, day, depth + 1);
  }
}

/** Whether an entry of a list has a time; then its numbers are kept. */
function measured(row: unknown, path: string[], found: Collected, zone: Zone, day: string): boolean {
  if (row === null || typeof row !== "object" || Array.isArray(row)) return false;
  const leaves = leavesOf(row);
  const time = rowTime(leaves.filter(([key]) => TIME.test(key.split(" ").at(-1)!)).map(([, value]) => value), zone, day);
  if (time === null) return false;
  const type = (row as Record<string, unknown>).dataTypeName;
  let numbers = 0;
  for (const [key, value] of leaves) {
    const number = typeof value === "string" && /^[+-]?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
    if (typeof number !== "number" || OTHER_TIME.test(key) || IDENTITY.test(key)) continue;
    numbers += 1;
    found.add(inWords(typeof type === "string" ? type : [...path, key].join(" ")), "", time, number);
  }
  return numbers > 0;
}

/** The time of a row: the first one with a date, joined with its time of day in another field. */
function rowTime(values: unknown[], zone: Zone, day: string): number | null {
  const read = values.flatMap((value) => {
    const wall = wallOf(value, zone, day);
    const clock = typeof value === "string" && value.includes(":");
    const dated = typeof value !== "string" || readTime(value, "month", zone)?.dated === true;
    return wall === null ? [] : [{ value, wall, whole: dated && (clock || typeof value === "number"), date: dated && typeof value === "string" && !clock, clock: clock && !dated }];
  });
  const whole = read.find((one) => one.whole);
  const date = read.find((one) => one.date);
  const clock = read.find((one) => one.clock);
  if (!whole && date && clock) return date.wall + readTime(clock.value as string, "month", zone)!.wall;
  return (whole ?? read[0])?.wall ?? null;
}

function wallOf(value: unknown, zone: Zone, day: string): number | null {
  if (typeof value === "number") {
    const instant = unixTime(value);
    return instant === null ? null : zone.wall(instant);
  }
  if (typeof value !== "string") return null;
  const read = readTime(value, "month", zone);
  if (read === null) return null;
  return read.dated ? read.wall : read.wall + (Date.parse(day) || 0);
}

/** Numbers and texts of an object and of what is in it; of a list in it the only entry. */
function leavesOf(node: object, path: string[] = []): [string, unknown][] {
  if (path.length > 4) return [];
  return Object.entries(node).flatMap(([key, value]): [string, unknown][] => {
    const one = Array.isArray(value) && value.length === 1 ? value[0] : value;
    const here = [...path, key];
    if (one !== null && typeof one === "object") return Array.isArray(one) ? [] : leavesOf(one, here);
    return [[here.join(" "), one]];
  });
}

/** The first date in a document: the day of clock times that stand without one. */
function firstDate(node: unknown, depth: number): string {
  if (depth > DEEPEST) return "";
  if (typeof node === "string") return /^\d{4}-\d\d-\d\d/.exec(node)?.[0] ?? "";
  if (node === null || typeof node !== "object") return "";
  const places: Iterable<string> = Array.isArray(node) ? ["0", "1", "2"] : Object.keys(node);
  for (const place of places) {
    const found = firstDate((node as Record<string, unknown>)[place], depth + 1);
    if (found) return found;
  }
  return "";
}
