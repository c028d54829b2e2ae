/** Text files of columns, on the person's device: what is wrong with one is said in its owner's terms. */

import { orderOf, readTime, unixTime, type Moment, type Zone } from "./times.ts";
import { english, Unreadable, type Said } from "./unreadable.ts";

/** Cells of a file by rows; whether commas are decimal ones; how it was read. */
export type Table = { names: string[]; rows: string[][]; commas: boolean; how: Said; said: string };

const MOST_ROWS = 500_000;
const MOST_COLUMNS = 5_000;
const MOST_CELLS = 5_000_000;
const MISSING = /^(na|nan|null|-|--)?$/i;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const THOUSANDS = /^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$/;
const SEPARATORS = { ";": "file.semicolons", "\t": "file.tabs", ",": "file.commas" } as const;
const FIRST = 1_000; // rows that show what a column holds

/** Columns of a text file; semicolons or tabs leave the comma free for decimals. */
export function readTable(text: string): Table {
  const lines = text.replace(/^\ufeff/, "").split(/\r\n|\n|\r/).filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new Unreadable("file.empty");
  if (lines.length > MOST_ROWS) throw new Unreadable("file.long", { most: MOST_ROWS });
  if (/[\u0000-\u0008\ufffd]/.test(lines[0]!.slice(0, 1_000))) throw new Unreadable("file.no-text");
  const start = titled(lines) ? 1 : 0;
  const separator = (Object.keys(SEPARATORS) as (keyof typeof SEPARATORS)[]).find((one) => lines[start]!.includes(one)) ?? ";";
  const commas = separator !== ",";
  const width = split(lines[start]!, separator).length;
  if (width > MOST_COLUMNS) throw new Unreadable("file.wide", { most: MOST_COLUMNS });
  if ((width - 1) * lines.length > MOST_CELLS) throw new Unreadable("file.points", { most: MOST_CELLS });
  const cells: string[][] = [];
  for (let k = start; k < lines.length; k += 1) {
    const row = split(lines[k]!, separator);
    if (row.length === width + 1 && row[width] === "") row.pop(); // a separator at the end of a line
    if (row.length !== width) {
      throw new Unreadable(commas ? "file.ragged" : "file.ragged-commas", { line: k + 1, found: row.length, width });
    }
    cells.push(row);
  }
  const headed = cells[0]!.some((cell) => !MISSING.test(cell) && !NUMBER.test(commas ? cell.replace(",", ".") : cell) && !isTime(cell) && !/^\[/.test(cell));
  const names = headed ? cells[0]! : cells[0]!.map((_, k) => `column ${k + 1}`);
  const rows = headed ? cells.slice(1) : cells;
  if (rows.length === 0) throw new Unreadable("file.only-names");
  const how: Said = {
    code: width > 1 ? "file.read-columns" : "file.read",
    parameters: { lines: rows.length, width, separator: { code: SEPARATORS[separator] }, names: { code: headed ? "file.named" : "file.unnamed" } },
  };
  return { names, rows, commas, how, said: english(how) };
}

const isTime = (cell: string): boolean => readTime(cell, "month", UTC) !== null || readTime(cell, "day", UTC) !== null;
const UTC = { wall: (instant: number) => instant } as Zone;

/** Whether a title stands above the names: one cell above several, or the line of a Samsung export. */
function titled([first, second]: string[]): boolean {
  return second !== undefined && (/^com\.samsung\./.test(first!) || (!/[;,\t]/.test(first!) && /[^\d\s.,;-]/.test(first!) && second.split(/[;,\t]/).length > 2));
}

/** The cells of a line; between quotes, a separator is part of the text. */
function split(line: string, separator: string): string[] {
  if (!line.includes('"')) return line.split(separator, MOST_COLUMNS + 2).map((cell) => cell.trim());
  const found: string[] = [];
  let quoted = false;
  let from = 0;
  for (let k = 0; k <= line.length && found.length <= MOST_COLUMNS + 1; k += 1) {
    if (line[k] === '"') quoted = !quoted;
    else if (k === line.length || (line[k] === separator && !quoted)) {
      found.push(line.slice(from, k).replaceAll('"', "").trim());
      from = k + 1;
    }
  }
  return found;
}

/** A cell as a number; NaN where it is empty or none. */
export function numberOf(cell: string, commas: boolean): number {
  const text = commas ? cell.replace(",", ".") : cell;
  return NUMBER.test(text) ? Number(text) : NaN;
}

/** Cells of a column as numbers. Commas within cells stand for thousands, or else for decimals. */
function numbers(table: Table, place: number): number[] {
  const cells = table.rows.map((row) => row[place]!);
  const withComma = table.commas ? [] : cells.filter((cell) => cell.includes(","));
  const thousands = withComma.length > 0 && withComma.every((cell) => THOUSANDS.test(cell));
  return cells.map((cell) => (thousands ? numberOf(cell.replaceAll(",", ""), false) : numberOf(cell, table.commas || withComma.length > 0)));
}

/** One column as numbers; empty cells are missing points, other text is an error. */
export function column(table: Table, place: number): number[] {
  const found = numbers(table, place);
  const wrong = found.findIndex((value, k) => Number.isNaN(value) && !MISSING.test(table.rows[k]![place]!));
  if (wrong >= 0) throw new Unreadable("file.no-number", { name: table.names[place]!, line: wrong + 1 });
  return found;
}

/** One column as times; null where it holds something else, an error where some of its cells do. */
export function times(table: Table, place: number, zone: Zone): Moment[] | null {
  const cells = table.rows.map((row) => row[place]!);
  const order = orderOf(cells);
  const offsets = offsetsOf(table, place);
  const asNumber = isUnix(table, place);
  const found = cells.map((cell) => {
    const instant = asNumber ? unixTime(Number(cell)) : null;
    return instant === null ? readTime(cell, order, zone) : { wall: zone.wall(instant), dated: true };
  });
  if (2 * found.filter((one) => one !== null).length < found.length) return null;
  const dated = found.find((one) => one !== null)!.dated;
  const wrong = found.findIndex((one) => one === null || one.dated !== dated);
  if (wrong >= 0) throw new Unreadable("file.no-time", { name: table.names[place]!, line: wrong + 1 });
  return found.map((one, k) => ({ wall: one!.wall + (offsets ? offsets[k]! : 0), dated }));
}

/** Samsung writes UTC, and beside it how far the clock was ahead, as UTC+0100. */
function offsetsOf(table: Table, place: number): number[] | null {
  const beside = table.names.findIndex((name) => /time_offset$/.test(name));
  if (beside < 0 || !/start_time$/.test(table.names[place]!)) return null;
  const found = table.rows.map((row) => /^UTC([+-])(\d\d)(\d\d)$/.exec(row[beside]!));
  return found.every((one) => one !== null)
    ? found.map((one) => (one![1] === "-" ? -1 : 1) * (Number(one![2]) * 60 + Number(one![3])) * 60_000)
    : null;
}

const TIMELY = /(^t$|time|date|stamp|unix|epoch|start|zeit|datum|uhr|when|heure|fecha|hora)/i;
const LATER = /(end|until|to$|ende|creat|updat|modif|offset|zone|durat)/i;
const LENGTH = /durat|dauer|elapsed|total|gesamt|length|pace/i;
const IDENTITY = /(^|[_\s.])(id|uuid|uid|guid|key|pkg_name|deviceuuid|custom|source|version|ver|nr)$|^id/i;

function isUnix(table: Table, place: number): boolean {
  const found = table.rows.slice(0, FIRST).map((row) => (/^\d{10,19}(\.\d+)?$/.test(row[place]!) ? unixTime(Number(row[place])) : null));
  if (found.some((one) => one === null)) return false;
  const grows = found.every((one, k) => k === 0 || one! > found[k - 1]!);
  return TIMELY.test(table.names[place]!) || (table.names.length > 1 && table.rows.length > 1 && grows);
}

/** Columns that hold times, the likeliest first: beginnings before ends. */
export function timeColumns(table: Table): number[] {
  const first = { ...table, rows: table.rows.slice(0, FIRST) };
  const found = table.names.flatMap((_, k) => (holdsTimes(first, k) ? [k] : []));
  const rank = (k: number) => (LATER.test(table.names[k]!) ? 2 : TIMELY.test(table.names[k]!) ? 0 : 1);
  return found.sort((a, b) => rank(a) - rank(b) || a - b);
}

function holdsTimes(table: Table, place: number): boolean {
  try {
    return times(table, place, UTC) !== null;
  } catch {
    return true; // some cells of it, which is said when it is read
  }
}

/** Columns of measurements: numbers that are neither times nor identifiers. */
export function valueColumns(table: Table): number[] {
  const taken = new Set(timeColumns(table));
  const first = { ...table, rows: table.rows.slice(0, FIRST) };
  return table.names.flatMap((name, k) => {
    if (taken.has(k) || IDENTITY.test(name) || (LATER.test(name) && TIMELY.test(name))) return [];
    const cells = numbers(first, k);
    const odd = cells.filter((value, row) => Number.isNaN(value) && !MISSING.test(first.rows[row]![k]!)).length;
    return 2 * odd <= cells.length && cells.some((value) => !Number.isNaN(value)) ? [k] : []; // an odd cell is said when it is read
  });
}

/** A Withings export has lists in its cells, `[60,60]` and `[61,63]`: a row for each entry instead. */
export function unfolded(table: Table): Table {
  const [start, durations, values] = ["start", "duration", "value"].map((name) => table.names.indexOf(name));
  const list = (cell: string) => cell.slice(1, -1).split(",").map(Number);
  if (start! < 0 || durations! < 0 || values! < 0 || !table.rows.every((row) => /^\[.*\]$/.test(row[values!]!))) return table;
  const rows = table.rows.flatMap((row) => {
    const [long, found] = [list(row[durations!]!), list(row[values!]!)];
    let after = 0;
    return found.map((value, k) => {
      const cells = [shifted(row[start!]!, after), String(value)];
      after += long[k] ?? 0;
      return cells;
    });
  });
  return { ...table, names: ["start", "value"], rows };
}

/**
 * The table with a date and a time of day in two columns as one column of times. A column of times
 * of day takes the nearest column of dates before it, or else the first one; a column of durations,
 * by its name, is not a time of day.
 */
export function joined(table: Table): Table {
  const head = table.rows.slice(0, FIRST);
  const kinds = table.names.map((_, k) => kindOfTime(head.map((row) => row[k]!)));
  const dates = kinds.flatMap((kind, k) => (kind === "date" ? [k] : []));
  const pairs = new Map<number, number>();
  kinds.forEach((kind, k) => {
    const date = dates.filter((one) => one < k).at(-1) ?? dates[0];
    if (kind === "clock" && date !== undefined && !LENGTH.test(table.names[k]!)) pairs.set(k, date);
  });
  if (pairs.size === 0) return table;
  const used = new Set(pairs.values());
  const places = table.names.map((_, k) => k).filter((k) => !used.has(k));
  const names = places.map((k) => (pairs.has(k) ? `${table.names[pairs.get(k)!]} ${table.names[k]}` : table.names[k]!));
  const rows = table.rows.map((row) => places.map((k) => {
    if (!pairs.has(k)) return row[k]!;
    const date = row[pairs.get(k)!]!;
    return date && row[k] ? `${date} ${row[k]}` : "";
  }));
  return { ...table, names, rows };
}

/** "date" or "clock" where all cells that are not empty are one, else null. */
function kindOfTime(cells: string[]): "date" | "clock" | null {
  const order = orderOf(cells);
  const read = cells.filter((cell) => !MISSING.test(cell)).map((cell) => readTime(cell, order, UTC));
  if (read.length === 0 || read.some((one) => one === null)) return null;
  const withClock = cells.some((cell) => cell.includes(":"));
  if (read.every((one) => one!.dated)) return withClock ? null : "date";
  return withClock && read.every((one) => !one!.dated) ? "clock" : null;
}

/** A written time so many seconds later; its zone stays what it is. */
function shifted(time: string, seconds: number): string {
  const found = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(.*)$/.exec(time);
  if (!found || seconds === 0) return time;
  return new Date(Date.parse(`${found[1]}T${found[2]}Z`) + 1000 * seconds).toISOString().slice(0, 19) + found[3]!;
}
