/** Reading a person's file, on the person's device, for the person's eyes: what is wrong is said. */

/** Something in a file that its owner can put right. */
export class Unreadable extends Error {}

export type Table = { names: string[]; rows: string[][]; commas: boolean };

const MOST_ROWS = 100_000;

/** Columns of a text file; semicolons or tabs leave the comma free for decimals. */
export function readTable(text: string): Table {
  const lines = text.replace(/^\ufeff/, "").split(/\r\n|\n|\r/).filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new Unreadable("The file is empty.");
  if (lines.length > MOST_ROWS) throw new Unreadable(`The file has more than ${MOST_ROWS} lines.`);
  if (/[\u0000-\u0008]/.test(lines[0]!)) throw new Unreadable("This is no text file. Save it as CSV first.");
  const separator = [";", "\t", ","].find((one) => lines[0]!.includes(one)) ?? ";";
  const commas = separator !== ",";
  const cells = lines.map((line) => line.split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1")));
  const width = cells[0]!.length;
  const odd = cells.findIndex((row) => row.length !== width);
  if (odd >= 0) {
    const hint = commas ? "" : " If commas are decimal commas, separate columns by semicolons.";
    throw new Unreadable(`Line ${odd + 1} has ${cells[odd]!.length} columns, the first has ${width}.${hint}`);
  }
  const headed = cells[0]!.some((cell) => cell !== "" && Number.isNaN(numberOf(cell, commas)));
  const names = headed ? cells[0]! : cells[0]!.map((_, k) => `column ${k + 1}`);
  const rows = headed ? cells.slice(1) : cells;
  if (rows.length === 0) throw new Unreadable("The file has a line of names, and no line of numbers.");
  return { names, rows, commas };
}

/** A cell as a number; NaN where it is empty or none. */
export function numberOf(cell: string, commas: boolean): number {
  const text = commas ? cell.replace(",", ".") : cell;
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN;
}

/** One column as numbers; empty cells are missing points, other text is an error. */
export function column(table: Table, place: number): number[] {
  return table.rows.map((row, k) => {
    const value = numberOf(row[place]!, table.commas);
    if (Number.isNaN(value) && row[place] !== "" && !/^(na|nan)$/i.test(row[place]!)) {
      throw new Unreadable(`"${table.names[place]}" has something that is no number, in line ${k + 1} of the numbers.`);
    }
    return value;
  });
}
