/** From the columns of a file to a curve or a row, and what its owner should know about it. */

import { channelsOf, domainOf, outside, type Curve, type Plan } from "../src/index.ts";
import { column, counted, hours, Unreadable, type Table } from "./csv.ts";

/** What was read, and sentences about it: a line of values for each channel of a curve, or the cells of a row. */
export type Read = { curve: Curve; points: number[]; lines: number[][]; cells: string[]; said: string[] };

export function isCurve(plan: Plan): boolean {
  return plan.encoder.basis.name !== "identity";
}

/** What is read where nobody has chosen otherwise: t first, then the channels. */
export function usual(plan: Plan, { names }: Table): { t: number | null; x: number[] } {
  const count = channelsOf(plan);
  const t = names.length > count ? 0 : null;
  return { t, x: Array.from({ length: count }, (_, k) => Math.min(k + (t === null ? 0 : 1), names.length - 1)) };
}

/** A curve: a column of values for each channel, at equal distances or beside a column of t. */
export function readCurve(plan: Plan, table: Table, chosen: { t: number | null; x: number[] }): Read {
  const lines = chosen.x.map((place) => column(table, place));
  if (table.names.length < lines.length) {
    throw new Unreadable(`The study asks for ${lines.length} values at each t, and the file has ${counted(table.names.length, "column")}.`);
  }
  const [low, high] = domainOf(plan);
  const total = table.rows.length;
  const clock = chosen.t === null ? null : hours(table, chosen.t);
  const own = chosen.t === null ? null : (clock ?? column(table, chosen.t));
  const points = own ?? lines[0]!.map((_, k) => (total === 1 ? low : low + ((high - low) * k) / (total - 1)));
  const said: string[] = [];
  lines.forEach((values, c) => {
    const which = lines.length > 1 ? `"${table.names[chosen.x[c]!]}": ` : "";
    const part = plan.encoder.basis.parts?.[c] ?? plan.encoder.basis;
    const functions = part.n_basis ?? part.values![0]!.length;
    said.push(...aboutPoints(which, points, values, [low, high], own !== null, functions));
  });
  if (clock) said.push("Times were read as hours since midnight.");
  if (own && own.some((t, k) => k > 0 && !(t > own[k - 1]!))) {
    said.push(table.commas || clock
      ? "t does not grow from line to line."
      : "t does not grow from line to line. If commas are decimal commas, separate columns by semicolons.");
  }
  const values = lines.length === 1 ? lines[0]! : lines[0]!.map((_, k) => lines.map((line) => line[k]!));
  const curve = own ? { points: own, values } : { values };
  return { curve, points, lines, cells: [], said: [...said, ...farAway(plan, curve)] };
}

function aboutPoints(
  which: string, points: number[], values: number[], [low, high]: [number, number], own: boolean, functions: number,
): string[] {
  const total = values.length;
  const valued = values.filter((x) => !Number.isNaN(x)).length;
  const seen = values.filter((x, k) => !Number.isNaN(x) && points[k]! >= low && points[k]! <= high).length;
  if (valued === 0) throw new Unreadable(`${which}There is no number in this column.`);
  if (seen === 0) throw new Unreadable(`${which}No point lies between t = ${low} and t = ${high}, where this study looks.`);
  if (seen < Math.min(2, total)) throw new Unreadable(`${which}Only one point lies between t = ${low} and t = ${high}: two are needed at least.`);
  const where = own ? `between t = ${low} and t = ${high}` : `at equal distances from t = ${low} to t = ${high}`;
  return [
    `${which}${counted(seen, "point")} ${where}.`,
    ...(total > valued ? [`${total - valued} without a value ${total - valued === 1 ? "is" : "are"} left out.`] : []),
    ...(valued > seen ? [`${valued - seen} outside ${valued - seen === 1 ? "is" : "are"} left out.`] : []),
    ...(seen < functions ? [`The study looks at up to ${functions} features of a curve: so few points show only a part of it.`] : []),
  ];
}

/** Only what the study would see as something else is worth a word. */
function farAway(plan: Plan, curve: Curve): string[] {
  const [far, all] = outside(plan.encoder, curve);
  if (far === 0) return [];
  const what = isCurve(plan) ? "features of the curve" : "numbers";
  return [`${far} of ${all} ${what} lie outside the study's range: its edge counts instead. Are the units right?`];
}

/** A row of numbers or categories: one line with the study's columns, or one column of numbers. */
export function readRow(plan: Plan, table: Table): Read {
  const { table: known, basis } = plan.encoder;
  if (table.rows.length !== 1 && table.names.length !== 1) {
    throw new Unreadable(`The file has ${table.rows.length} lines of numbers: yours alone belongs in it.`);
  }
  if (known?.named) {
    const cells = known.columns.map(({ key, categories }) => {
      const place = typeof key === "number" ? key : table.names.indexOf(key); // a number is a column's place, from 0 on
      if (place < 0 || place >= table.names.length) throw new Unreadable(`The study asks for a column "${key}", and the file has none.`);
      return categories.length ? category(table.rows[0]![place]!, categories) : column(table, place)[0]!;
    });
    return row(plan, cells, known.columns.map(({ key }) => (typeof key === "number" ? table.names[key]! : key)), "column");
  }
  const values = table.rows.length === 1 ? table.names.map((_, k) => column(table, k)[0]!) : column(table, 0);
  const wanted = known ? known.columns.length : basis.n_basis!;
  if (values.length !== wanted) throw new Unreadable(`The study asks for ${counted(wanted, "number")}, and the file has ${values.length}.`);
  if (values.every(Number.isNaN)) throw new Unreadable("There is no number in the file.");
  return row(plan, values, table.rows.length === 1 ? table.names : values.map((_, k) => String(k + 1)), "number");
}

function row(plan: Plan, values: unknown[], names: string[], what: string): Read {
  const missing = values.filter(Number.isNaN).length;
  const curve = { values };
  const cells = values.map((value, k) => `${names[k]}: ${Number.isNaN(value) ? "unknown" : value}`);
  const told = [`${counted(values.length, what)}.`, ...(missing ? [`${missing} of them ${missing === 1 ? "is" : "are"} unknown.`] : []), ...farAway(plan, curve)];
  return { curve, points: [], lines: [], cells, said: told };
}

function category(cell: string, known: unknown[]): unknown {
  const found = known.find((one) => String(one) === cell);
  if (found === undefined) throw new Unreadable(`"${cell}" is none of: ${known.join(", ")}.`);
  return found;
}
