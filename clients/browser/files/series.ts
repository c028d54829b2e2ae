/** Measurements with their times, by name; one day of them, or the average day. */

import { dayOf } from "./times.ts";

/** One measured quantity: milliseconds on the wall's clock, ascending, and a value at each. */
export type Series = { name: string; unit: string; times: number[]; values: number[]; dated: boolean };

/** What is taken from a series: one of its days, the average day, or all of it. */
export type Choice = { day: string } | "average" | "all";

const DAY = 86_400_000;
const QUARTER = 900_000; // the average day has a point every quarter of an hour: finer than what differs between days

/** In order of time; values of the same moment become their mean. */
export function inOrder(series: Series): Series {
  const order = series.times.map((_, k) => k).filter((k) => Number.isFinite(series.values[k]!));
  if (order.some((k, place) => place > 0 && series.times[k]! < series.times[order[place - 1]!]!)) {
    order.sort((a, b) => series.times[a]! - series.times[b]!);
  }
  const [times, values, counts]: number[][] = [[], [], []];
  for (const k of order) {
    const last = times!.length - 1;
    if (last >= 0 && times![last] === series.times[k]) {
      counts![last]! += 1;
      values![last]! += (series.values[k]! - values![last]!) / counts![last]!;
    } else {
      times!.push(series.times[k]!);
      values!.push(series.values[k]!);
      counts!.push(1);
    }
  }
  return { ...series, times: times!, values: values! };
}

/** The days on which something was measured, and how often. */
export function daysOf(series: Series): { day: string; points: number }[] {
  const counts = new Map<number, number>();
  for (const time of series.times) counts.set(Math.floor(time / DAY), (counts.get(Math.floor(time / DAY)) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => a - b).map(([day, points]) => ({ day: dayOf(day * DAY), points }));
}

/** The day with the most measurements, the latest of them. */
export function fullestDay(series: Series): string {
  return daysOf(series).reduce((best, one) => (one.points >= best.points ? one : best)).day;
}

/** Hours since midnight, and values: of one day (and what comes after it, up to `until` hours), or of the average day. */
export function hoursOf(series: Series, choice: Choice, until = 24): { hours: number[]; values: number[] } {
  if (choice === "average") return averageDay(series);
  const first = choice === "all" ? Math.floor((series.times[0] ?? 0) / DAY) * DAY : Date.parse(choice.day);
  const [hours, values]: [number[], number[]] = [[], []];
  series.times.forEach((time, k) => {
    const t = (time - first) / 3_600_000;
    if (choice !== "all" && (t < 0 || t > until)) return;
    hours.push(t);
    values.push(series.values[k]!);
  });
  return { hours, values };
}

/** The mean over days of each day's mean, in each quarter of an hour that was measured on some day. */
function averageDay(series: Series): { hours: number[]; values: number[] } {
  const means = new Map<number, { sum: number; count: number }>(); // by day and quarter
  series.times.forEach((time, k) => {
    const at = Math.floor(time / QUARTER);
    const one = means.get(at) ?? { sum: 0, count: 0 };
    one.sum += series.values[k]!;
    one.count += 1;
    means.set(at, one);
  });
  const quarters = new Map<number, { sum: number; count: number }>();
  for (const [at, { sum, count }] of means) {
    const quarter = ((at % 96) + 96) % 96;
    const one = quarters.get(quarter) ?? { sum: 0, count: 0 };
    one.sum += sum / count;
    one.count += 1;
    quarters.set(quarter, one);
  }
  const found = [...quarters].sort(([a], [b]) => a - b);
  return { hours: found.map(([quarter]) => (quarter + 0.5) / 4), values: found.map(([, { sum, count }]) => sum / count) };
}

/** Words for the same quantity, in names of series, titles of studies and units. */
const KINDS: Record<string, RegExp> = {
  "heart rate": /heart.?rate|\bhr\b|bpm|pulse|puls\b|herz(frequenz|schlag)|beats|count\/min/i,
  steps: /step|schritt/i,
  glucose: /gluc|gluk|blood sugar|blutzucker|mg\/dl|mmol/i,
  weight: /weight|body.?mass\b|gewicht/i,
  temperature: /temp|°c/i,
  oxygen: /spo2|oxygen|sauerstoff/i,
  energy: /energy|calorie|kalorie|kcal/i,
  distance: /distance|distanz|strecke/i,
  altitude: /altitude|elevation|\bele\b|höhe/i,
  cadence: /cadence|kadenz/i,
  power: /\bwatt|\bpower\b|leistung/i,
  variability: /variability|sdnn|rmssd|\bhrv\b/i,
  resting: /resting|ruhe/i,
  speed: /speed|geschwindigkeit/i,
};

const kindsOf = (words: string): Set<string> => new Set(Object.keys(KINDS).filter((kind) => KINDS[kind]!.test(words)));

/** The one of some names that a study's words ask for, the shortest of them; null where none does, or where it is open which. */
export function named(names: string[], wanted: string): number | null {
  if (names.length === 1) return 0;
  const words = wanted.trim().toLowerCase();
  for (const fits of [(name: string) => name === words, (name: string) => words !== "" && name.includes(words)]) {
    const places = names.flatMap((name, k) => (fits(name.toLowerCase()) ? [k] : []));
    if (places.length === 1) return places[0]!;
  }
  const asked = kindsOf(wanted);
  const scores = names.map((name) => {
    const own = kindsOf(name);
    const shared = [...own].filter((kind) => asked.has(kind)).length;
    return shared === 0 ? 0 : shared - 0.1 * [...own].filter((kind) => !asked.has(kind)).length - (/\b(max|min)|goal|zone/i.test(name) ? 0.5 : 0);
  });
  const best = Math.max(...scores);
  if (!(best > 0)) return null;
  const places = names.map((_, k) => k).filter((k) => scores[k] === best).sort((a, b) => names[a]!.length - names[b]!.length);
  return places.length > 1 && names[places[0]!]!.length === names[places[1]!]!.length ? null : places[0]!;
}

/** HKQuantityTypeIdentifierHeartRate, com.google.heart_rate.bpm and heartRate in words. */
export function inWords(name: string): string {
  return name
    .replace(/^HK(Quantity|Category)TypeIdentifier|^com\.google\.|^com\.samsung\.(s?health)\./, "")
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/[_.\s:-]+/g, " ")
    .trim()
    .toLowerCase()
    .slice(0, 60);
}
