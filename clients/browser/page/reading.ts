/** From the columns of a file to a curve or a row, and what its owner should know about it. */

import type { Curve, Plan } from "../src/index.ts";
import { column, Unreadable, type Table } from "./csv.ts";

/** What was read, and sentences about it. */
export type Read = { curve: Curve; points: number[]; values: number[]; said: string[] };

/** What of this plan the page can read from a file; null, or why not. */
export function unreadable(plan: Plan): string | null {
  if (plan.encoder.basis.parts) return "This study asks for curves of several channels, which this page cannot read.";
  return null;
}

export function isCurve(plan: Plan): boolean {
  return plan.encoder.basis.name !== "identity";
}

/** A curve: one column of values at equal distances, or t and x(t). */
export function readCurve(plan: Plan, table: Table, chosen: { t: number | null; x: number }): Read {
  const values = column(table, chosen.x);
  const { basis } = plan.encoder;
  const [low, high] = basis.domain_range ?? [basis.points![0]!, basis.points![basis.points!.length - 1]!];
  const own = chosen.t === null ? null : column(table, chosen.t);
  const points = own ?? values.map((_, k) => (values.length === 1 ? low : low + ((high - low) * k) / (values.length - 1)));
  const seen = values.filter((x, k) => !Number.isNaN(x) && points[k]! >= low && points[k]! <= high).length;
  if (seen === 0) {
    throw new Unreadable(own
      ? `No point lies between t = ${low} and t = ${high}, where this study looks.`
      : "There is no number in this column.");
  }
  const said = [`${seen} points${own ? ` between t = ${low} and t = ${high}` : ` at equal distances from t = ${low} to t = ${high}`}.`];
  const missing = values.filter(Number.isNaN).length;
  if (missing) said.push(`${missing} points have no value and are left out.`);
  const outside = values.length - missing - seen;
  if (outside) said.push(`${outside} points lie outside and are left out.`);
  if (own && own.some((t, k) => k > 0 && !(t > own[k - 1]!)) && !table.commas) {
    said.push("t does not grow from line to line. If commas are decimal commas, separate columns by semicolons.");
  }
  const functions = basis.n_basis ?? basis.values?.[0]?.length ?? 1;
  if (seen < functions) said.push(`The study looks at ${functions} features of a curve: with fewer points it sees only a part.`);
  return { curve: own ? { points: own, values } : { values }, points, values, said };
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
    return { curve: { values: cells }, points: [], values: cells.filter((x): x is number => typeof x === "number"), said: [`${cells.length} columns.`] };
  }
  const values = table.rows.length === 1 ? table.names.map((_, k) => column(table, k)[0]!) : column(table, 0);
  const wanted = known ? known.columns.length : basis.n_basis!;
  if (values.length !== wanted) throw new Unreadable(`The study asks for ${wanted} numbers, and the file has ${values.length}.`);
  return { curve: { values }, points: values.map((_, k) => k), values, said: [`${values.length} numbers.`] };
}

function category(cell: string, known: unknown[]): unknown {
  const found = known.find((one) => String(one) === cell);
  if (found === undefined) throw new Unreadable(`"${cell}" is none of: ${known.join(", ")}.`);
  return found;
}
