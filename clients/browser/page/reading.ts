/** From a file to a curve or a row, and what its owner should know about it. */

import { channelsOf, domainOf, outside, type Curve, type Plan } from "../src/index.ts";
import {
  column, daysOf, fullestDay, hoursOf, named, numberOf, timeColumns, times, valueColumns, type Choice, type Recording, type Series, type Table,
} from "../files/index.ts";
import { inOrder } from "../files/series.ts";
import type { Parameters } from "../words/words.ts";
import type { Code } from "./language.ts";

/** A sentence for the person, in whatever language. */
export type Sentence = { code: Code; parameters: Parameters };

/** Something in a file that does not go together with the study. */
export class Unfit extends Error {
  readonly sentence: Sentence;

  constructor(code: Code, parameters: Parameters = {}) {
    super(code);
    this.sentence = { code, parameters };
  }
}

export type Units = { t: string; x: string };

/** Which columns or series are read, and which day of them; null where nobody has said so yet. */
export type Chosen = { t: number | null; x: (number | null)[]; day: Choice | null };

/** What was read: a line of values for each channel of a curve, or the cells of a row; the days that there are. */
export type Read = {
  curve: Curve;
  points: number[];
  lines: number[][];
  cells: { name: string; value: unknown }[];
  said: Sentence[];
  days: { day: string; points: number }[];
  averages: boolean;
};

export function isCurve(plan: Plan): boolean {
  return plan.encoder.basis.name !== "identity";
}

/** The names of what a curve's values can be: columns of a table, or series. */
export function namesOf(recording: Recording): string[] {
  return recording.table?.names ?? recording.series.map(({ name, unit }) => (unit ? `${name} (${unit})` : name));
}

/** What is read where nobody has chosen otherwise: times, and the values that the study's words name. */
export function usual(plan: Plan, recording: Recording, units: Units = { t: "", x: "" }): Chosen {
  const count = channelsOf(plan);
  const wanted = `${plan.title} ${units.x}`;
  const names = namesOf(recording);
  const { table } = recording;
  if (!table) {
    const best = count === 1 ? named(recording.series.map(({ name }) => name), wanted) : null;
    return { t: null, x: Array.from({ length: count }, () => best), day: null };
  }
  const [clock] = timeColumns(table);
  const values = valueColumns(table).filter((k) => k !== clock);
  const t = clock ?? (names.length > count && values.length > count ? values[0]! : null);
  const free = values.filter((k) => k !== t);
  if (free.length === count || /^column 1$/.test(names[0]!)) return { t, x: padded(free, count), day: null };
  const best = count === 1 ? named(free.map((k) => names[k]!), wanted) : null;
  // A column of numbers beside them is t: then what follows it is meant, as in t, x.
  if (clock === undefined && best === null) return { t, x: padded(free, count), day: null };
  return { t, x: Array.from({ length: count }, () => (best === null ? null : free[best]!)), day: null };
}

function padded(places: number[], count: number): (number | null)[] {
  return Array.from({ length: count }, (_, k) => places[k] ?? places.at(-1) ?? null);
}

/** How much of a study's unit of t an hour is. */
function perHour(unit: string): number {
  const known: [RegExp, number][] = [[/^(s|sec|second|sekunde)/i, 3600], [/^min/i, 60], [/^(d|day|tag)/i, 1 / 24]];
  return known.find(([words]) => words.test(unit.trim()))?.[1] ?? 1;
}

/** A curve: values for each channel, at equal distances, beside a column of t, or at their times. */
export function readCurve(plan: Plan, recording: Recording, chosen: Chosen, units: Units = { t: "", x: "" }): Read {
  const places = chosen.x.map((place) => {
    if (place === null) throw new Unfit("read.choose");
    return place;
  });
  const { table } = recording;
  if (table && table.names.length < places.length) throw new Unfit("read.channels", { wanted: places.length, found: table.names.length });
  const moments = table && chosen.t !== null ? times(table, chosen.t, recording.zone) : null;
  if (table && moments === null) return atNumbers(plan, table, chosen.t, places);
  const series = table ? places.map((place) => columnSeries(table, place, moments!)) : places.map((place) => recording.series[place]!);
  if (!series[0]!.dated) return drawnFrom(plan, table!, places, series.map(({ times: wall, values }) => ({ t: wall.map((ms) => (ms / 3_600_000) * perHour(units.t)), values })), true, [{ code: "read.clock", parameters: {} }]);
  return atTimes(plan, recording, places, series.map(inOrder), chosen.day, units.t);
}

function columnSeries(table: Table, place: number, moments: { wall: number; dated: boolean }[]): Series {
  return { name: table.names[place]!, unit: "", times: moments.map(({ wall }) => wall), values: column(table, place), dated: moments[0]!.dated };
}

/** Values without times: t is a column of numbers, or they lie at equal distances. */
function atNumbers(plan: Plan, table: Table, t: number | null, places: number[]): Read {
  const lines = places.map((place) => column(table, place));
  const own = t === null ? null : column(table, t);
  const [low, high] = domainOf(plan);
  const total = table.rows.length;
  const points = own ?? lines[0]!.map((_, k) => (total === 1 ? low : low + ((high - low) * k) / (total - 1)));
  return drawnFrom(plan, table, places, lines.map((values) => ({ t: points, values })), own !== null, []);
}

/** Measurements with dates: one day of them, or the average day. */
function atTimes(plan: Plan, recording: Recording, places: number[], series: Series[], choice: Choice | null, unit: string): Read {
  const [low, high] = domainOf(plan);
  const scale = perHour(unit);
  const counts = daysOf(series[0]!);
  // Within a day an hour is that of the clock; a shorter span in minutes or seconds begins with the recording.
  const clock = scale <= 1 || high - low >= 24 * scale;
  const averages = clock && counts.length > 1 && low >= 0 && high <= 24 * scale;
  const day: Choice = choice === "average" && !averages ? { day: fullestDay(series[0]!) } : (choice ?? { day: fullestDay(series[0]!) });
  const lines = series.map((one) => {
    const { hours, values } = hoursOf(one, day, Math.max(24, high / scale));
    const start = clock ? 0 : (hours[0] ?? 0);
    return { t: hours.map((hour) => (hour - start) * scale), values };
  });
  const said: Sentence[] = [];
  if (day === "average") said.push({ code: "read.average", parameters: { days: counts.length } });
  else if (day !== "all") said.push({ code: counts.length > 1 ? "read.day-of" : "read.day", parameters: { day: { day: day.day }, days: counts.length } });
  said.push({ code: clock ? "read.clock" : "read.begins", parameters: {} });
  if (recording.zone.used) said.push({ code: "read.zone", parameters: { zone: recording.zone.name } });
  const found = drawnFrom(plan, recording.table, places, lines, true, said, recording.table ? undefined : namesOf(recording));
  return { ...found, days: counts, averages };
}

type Line = { t: number[]; values: number[] };

/** A curve of lines that may have been measured at different points. */
function drawnFrom(plan: Plan, table: Table | null, places: number[], lines: Line[], own: boolean, first: Sentence[], names = table?.names ?? []): Read {
  const [low, high] = domainOf(plan);
  const said: Sentence[] = [...first];
  lines.forEach(({ t, values }, c) => {
    const part = plan.encoder.basis.parts?.[c] ?? plan.encoder.basis;
    const functions = part.n_basis ?? part.values![0]!.length;
    said.push(...aboutPoints(lines.length > 1 ? `${names[places[c]!]}: ` : "", t, values, [low, high], own, functions));
  });
  const joined = together(lines);
  if (own && joined.t.some((t, k) => k > 0 && !(t > joined.t[k - 1]!))) {
    said.push({ code: table && !table.commas && first.length === 0 ? "read.unordered-commas" : "read.unordered", parameters: {} });
  }
  const values = lines.length === 1 ? joined.values[0]! : joined.t.map((_, k) => joined.values.map((line) => line[k]!));
  const curve = own ? { points: joined.t, values } : { values };
  return { curve, points: joined.t, lines: joined.values, cells: [], said: [...said, ...farAway(plan, curve)], days: [], averages: false };
}

/** Lines at the same points; where one was not measured, NaN. */
function together(lines: Line[]): { t: number[]; values: number[][] } {
  const [first, ...others] = lines;
  if (others.every(({ t }) => t.length === first!.t.length && t.every((one, k) => one === first!.t[k]))) {
    return { t: first!.t, values: lines.map(({ values }) => values) };
  }
  const t = [...new Set(lines.flatMap((line) => line.t))].sort((a, b) => a - b);
  return { t, values: lines.map((line) => {
    const known = new Map(line.t.map((one, k) => [one, line.values[k]!]));
    return t.map((one) => known.get(one) ?? NaN);
  }) };
}

function aboutPoints(which: string, points: number[], values: number[], [low, high]: [number, number], own: boolean, functions: number): Sentence[] {
  const total = values.length;
  const valued = values.filter((x) => !Number.isNaN(x)).length;
  const seen = values.filter((x, k) => !Number.isNaN(x) && points[k]! >= low && points[k]! <= high).length;
  const about = { which, low, high, seen, missing: total - valued, outside: valued - seen, functions };
  if (valued === 0) throw new Unfit("read.no-number", about);
  if (seen === 0) throw new Unfit("read.no-point", about);
  if (seen < Math.min(2, total)) throw new Unfit("read.one-point", about);
  return [
    { code: own ? "read.points" : "read.points-even", parameters: about },
    ...(total > valued ? [{ code: "read.missing", parameters: about } as const] : []),
    ...(valued > seen ? [{ code: "read.outside", parameters: about } as const] : []),
    ...(seen < functions ? [{ code: "read.few", parameters: about } as const] : []),
  ];
}

/** Only what the study would see as something else is worth a word. */
function farAway(plan: Plan, curve: Curve): Sentence[] {
  const [far, all] = outside(plan.encoder, curve);
  return far === 0 ? [] : [{ code: isCurve(plan) ? "read.far" : "read.far-numbers", parameters: { far, all } }];
}

/** A row of numbers or categories: one line with the study's columns, or one column of numbers. */
export function readRow(plan: Plan, table: Table | null): Read {
  if (!table) throw new Unfit("read.row-needed");
  const { table: known, basis } = plan.encoder;
  if (table.rows.length !== 1 && table.names.length !== 1) throw new Unfit("read.many-rows", { lines: table.rows.length });
  if (known?.named) {
    const cells = known.columns.map(({ key, categories }) => {
      const place = typeof key === "number" ? key : table.names.indexOf(key); // a number is a column's place, from 0 on
      if (place < 0 || place >= table.names.length) throw new Unfit("read.no-column", { name: String(key) });
      return categories.length ? category(table.rows[0]![place]!, categories) : column(table, place)[0]!;
    });
    return row(plan, cells, known.columns.map(({ key }) => (typeof key === "number" ? table.names[key]! : key)));
  }
  const values = table.rows.length === 1 ? table.names.map((_, k) => column(table, k)[0]!) : column(table, 0);
  const wanted = known ? known.columns.length : basis.n_basis!;
  if (values.length !== wanted) throw new Unfit("read.numbers", { wanted, found: values.length });
  if (values.every(Number.isNaN)) throw new Unfit("read.no-number", { which: "" });
  return row(plan, values, table.rows.length === 1 ? table.names : values.map((_, k) => String(k + 1)));
}

/** One of a few numbers, or categories, that a person can type instead of having a file. */
export type Field = { name: string | null; low: number | null; high: number | null; categories: unknown[] };

const MOST_TYPED = 30;

/** What a row is made of, where it can be typed; nothing for curves, and for rows that are long. */
export function fieldsOf(plan: Plan): Field[] {
  const { table, basis } = plan.encoder;
  if (isCurve(plan)) return [];
  const nameless: Field = { name: null, low: null, high: null, categories: [] };
  const fields = table
    ? table.columns.map(({ key, low, high, categories }): Field => ({ name: table.named && typeof key === "string" ? key : null, low, high, categories }))
    : Array.from({ length: basis.n_basis! }, () => nameless);
  return fields.length > MOST_TYPED ? [] : fields;
}

/** A row of cells that were typed; a category is the place of one. */
export function readTyped(plan: Plan, cells: string[], names: string[]): Read {
  const values = fieldsOf(plan).map(({ categories }, k) => {
    if (categories.length) return categories[Number(cells[k])];
    const value = numberOf(cells[k]!.trim(), true);
    if (Number.isNaN(value)) throw new Unfit("read.typed", { name: names[k]! });
    return value;
  });
  return row(plan, values, names);
}

function row(plan: Plan, values: unknown[], names: string[]): Read {
  const missing = values.filter(Number.isNaN).length;
  const curve = { values };
  const cells = values.map((value, k) => ({ name: names[k]!, value: Number.isNaN(value) ? null : value }));
  const said: Sentence[] = [
    { code: "read.row", parameters: { count: values.length } },
    ...(missing ? [{ code: "read.unknown", parameters: { missing } } as const] : []),
    ...farAway(plan, curve),
  ];
  return { curve, points: [], lines: [], cells, said, days: [], averages: false };
}

function category(cell: string, known: unknown[]): unknown {
  const found = known.find((one) => String(one) === cell);
  if (found === undefined) throw new Unfit("read.category", { cell, known: { listed: known.map(String), by: "or" } });
  return found;
}
