/** Reading a person's file, on the person's device, for the person's eyes: what is wrong is said. */

/** Something in a file that its owner can put right. */
export class Unreadable extends Error {}

/** Cells of a file by rows; whether commas are decimal ones; how it was read, in words. */
export type Table = { names: string[]; rows: string[][]; commas: boolean; said: string };

const MOST_ROWS = 100_000;
const MISSING = /^(na|nan)?$/i;

/** Columns of a text file; semicolons or tabs leave the comma free for decimals. */
export function readTable(text: string): Table {
  const lines = text.replace(/^\ufeff/, "").split(/\r\n|\n|\r/).filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new Unreadable("The file is empty.");
  if (lines.length > MOST_ROWS) throw new Unreadable(`The file has more than ${MOST_ROWS} lines.`);
  if (/[\u0000-\u0008\ufffd]/.test(lines[0]!)) throw new Unreadable("This is no text file. Save it as CSV first.");
  const separator = [";", "\t", ","].find((one) => lines[0]!.includes(one)) ?? ";";
  const commas = separator !== ",";
  const cells = lines.map((line) => split(line, separator));
  const width = cells[0]!.length;
  const odd = cells.findIndex((row) => row.length !== width);
  if (odd >= 0) {
    const hint = commas ? "" : " If commas are decimal commas, separate columns by semicolons.";
    throw new Unreadable(`Line ${odd + 1} has ${counted(cells[odd]!.length, "column")}, the first has ${width}.${hint}`);
  }
  const headed = cells[0]!.some((cell) => !MISSING.test(cell) && Number.isNaN(numberOf(cell, commas)) && hoursOf(cell) === null);
  const names = headed ? cells[0]! : cells[0]!.map((_, k) => `column ${k + 1}`);
  const rows = headed ? cells.slice(1) : cells;
  if (rows.length === 0) throw new Unreadable("The file has a line of names, and no line of numbers.");
  return { names, rows, commas, said: said(rows.length, width, separator, headed) };
}

function said(lines: number, width: number, separator: string, headed: boolean): string {
  const by = { ";": "semicolons", "\t": "tabs", ",": "commas" }[separator]!;
  const apart = width > 1 ? ` of ${width} columns between ${by}` : "";
  return `Read ${counted(lines, "line")}${apart}, ${headed ? "after a line of names" : "without a line of names"}.`;
}

/** The cells of a line; between quotes, a separator is part of the text. */
function split(line: string, separator: string): string[] {
  if (!line.includes('"')) return line.split(separator).map((cell) => cell.trim());
  const found = [""];
  let quoted = false;
  for (const sign of line) {
    if (sign === '"') quoted = !quoted;
    else if (sign === separator && !quoted) found.push("");
    else found[found.length - 1] += sign;
  }
  return found.map((cell) => cell.trim());
}

export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** A cell as a number; NaN where it is empty or none. */
export function numberOf(cell: string, commas: boolean): number {
  const text = commas ? cell.replace(",", ".") : cell;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
}

/** A clock's time as its day (or "") and hours since midnight; null where it is none. */
function hoursOf(cell: string): [string, number] | null {
  const found = /^(?:(\d{4}-\d\d-\d\d)[T ])?(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d+)?))?(?: ?(?:Z|[+-]\d\d:?\d\d))?$/.exec(cell);
  return found ? [found[1] ?? "", Number(found[2]) + Number(found[3]) / 60 + Number(found[4] ?? 0) / 3600] : null;
}

/** A column of clock times as hours since the first day's midnight; null where it holds anything else. */
export function hours(table: Table, place: number): number[] | null {
  const found = table.rows.map((row) => hoursOf(row[place]!));
  if (found.some((one) => one === null)) return null;
  const first = Date.parse(found[0]![0]);
  return found.map((one) => one![1] + (one![0] ? Math.round((Date.parse(one![0]) - first) / 3_600_000) : 0));
}

/** One column as numbers; empty cells are missing points, other text is an error. */
export function column(table: Table, place: number): number[] {
  return table.rows.map((row, k) => {
    const value = numberOf(row[place]!, table.commas);
    if (Number.isNaN(value) && !MISSING.test(row[place]!)) {
      throw new Unreadable(`"${table.names[place]}" has something that is no number, in line ${k + 1} of the numbers.`);
    }
    return value;
  });
}
