/** Files as people have them, and what is said about those that cannot be used. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { column, numberOf, readTable, Unreadable } from "../page/csv.ts";
import { readCurve, readRow, usual } from "../page/reading.ts";

const plans = JSON.parse(readFileSync("../vectors/plans.json", "utf8"));
const CURVES = plans.answers.plan; // t from 0 to 24
const ROWS = plans.vectors.plan; // three numbers
const CHANNELS = plans.channels.plan; // two of them, t from 0 to 1
const both = { t: 0, x: [1] };

const says = (words: RegExp) => (error: unknown) => error instanceof Unreadable && words.test(error.message);

test("separators, decimals and names", () => {
  assert.deepEqual(readTable("t,x\n0,1.5\n1,2").rows, [["0", "1.5"], ["1", "2"]]);
  assert.deepEqual(column(readTable("t;x\r\n0;1,5\r\n1;2"), 1), [1.5, 2]);
  assert.deepEqual(column(readTable("\ufeff1,5\n"), 0), [1], "a comma alone separates");
  assert.deepEqual(column(readTable('"a"\t"b"\n1\t-2,5e1'), 1), [-25]);
  assert.deepEqual(readTable("1\n2\n\n3").names, ["column 1"]);
  assert.deepEqual(column(readTable("x\n1\nNA\n3"), 0), [1, NaN, 3]);
  assert.deepEqual(readTable('"Time, local";"a ""b"""\n1;2').names, ["Time, local", "a b"]);
  for (const text of ["", "1.2.3", "0x10", "Infinity", "1 2", "e5", "--1"]) assert(Number.isNaN(numberOf(text, false)), text);
});

test("how a file was read is said", () => {
  assert.equal(readTable("t,x\n0,1.5").said, "Read 1 line of 2 columns between commas, after a line of names.");
  assert.equal(readTable("1,5\n2,5").said, "Read 2 lines of 2 columns between commas, without a line of names.");
  assert.equal(readTable("x\n1,5\n2,5").said, "Read 2 lines, after a line of names.");
  assert.deepEqual(column(readTable("x\n1,5\n2,5"), 0), [1.5, 2.5], "decimal commas in one column with a name");
});

test("what is wrong with a file is said in its own terms", () => {
  assert.throws(() => readTable(" \n"), says(/empty/));
  assert.throws(() => readTable("t,x"), says(/no line of numbers/));
  assert.throws(() => readTable("1,2\n3"), says(/Line 2 has 1 column, the first has 2.*semicolons/));
  assert.throws(() => readTable("PK\u0003\u0004"), says(/no text file/));
  assert.throws(() => column(readTable("x\n1\nhigh\n3"), 0), says(/"x".*line 2/));
});

test("a curve with its points", () => {
  const found = readCurve(CURVES, readTable("t;x\n0;1\n12;2\n24;3\n30;9\n13;\n"), both);
  assert.deepEqual(found.curve, { points: [0, 12, 24, 30, 13], values: [1, 2, 3, 9, NaN] });
  assert.match(found.said.join(" "), /^3 points between t = 0 and t = 24\. 1 without a value is left out\. 1 outside is left out\./);
  assert.match(found.said.join(" "), /up to 6 features.*t does not grow/);
  assert.throws(() => readCurve(CURVES, readTable("t,x\n50,1\n60,2"), both), says(/No point lies between t = 0 and t = 24/));
  assert.match(readCurve(CURVES, readTable("1,5\n2,5\n1,7"), both).said.join(" "), /decimal commas/);
});

test("a curve at equal distances", () => {
  const found = readCurve(CURVES, readTable("x\n1\n2\n3"), { t: null, x: [0] });
  assert.deepEqual([found.curve, found.points], [{ values: [1, 2, 3] }, [0, 12, 24]]);
  assert.throws(() => readCurve(CURVES, readTable("x\nNA\nNA"), { t: null, x: [0] }), says(/no number/));
});

test("clock times are hours since midnight", () => {
  const found = readCurve(CURVES, readTable("time,pulse\n2026-11-16 06:30:00,1\n2026-11-16 18:00,2\n2026-11-17T01:00:00Z,3"), both);
  assert.deepEqual((found.curve as any).points, [6.5, 18, 25]);
  assert.match(found.said.join(" "), /2 points.*1 outside.*hours since midnight/);
  assert.deepEqual((readCurve(CURVES, readTable("06:15 +0100;1\n7:00;2"), both).curve as any).points, [6.25, 7]);
  assert.throws(() => readCurve(CURVES, readTable("time,pulse\n06:15,1\nlater,2"), both), says(/"time" has something that is no number, in line 1/));
});

test("points outside, too few of them, and values of another unit are said", () => {
  assert.throws(() => readCurve(CURVES, readTable("t,x\n0,1\n50,2"), both), says(/Only one point lies between/));
  assert.match(readCurve(CURVES, readTable("t,x\n0,60\n12,70\n24,65"), both).said.join(" "), /6 of 6 features of the curve lie outside.*units/);
  assert.doesNotMatch(readCurve(CURVES, readTable("t,x\n0,.1\n12,.2\n24,.1"), both).said.join(" "), /units/);
  assert.match(readRow(ROWS, readTable("99,0,0")).said.join(" "), /1 of 3 numbers lie outside/);
  assert.match(readRow(ROWS, readTable("9,NA,0")).said.join(" "), /1 of them is unknown/);
  assert.throws(() => readRow(ROWS, readTable("x\nNA\nNA\nNA")), says(/no number/));
});

test("curves of several channels", () => {
  const table = readTable("t;up;down\n0;0,5;1\n0,5;;2\n1;1;3");
  assert.deepEqual(usual(CHANNELS, table), { t: 0, x: [1, 2] });
  const found = readCurve(CHANNELS, table, usual(CHANNELS, table));
  assert.deepEqual(found.curve, { points: [0, 0.5, 1], values: [[0.5, 1], [NaN, 2], [1, 3]] });
  assert.deepEqual(found.lines, [[0.5, NaN, 1], [1, 2, 3]]);
  const without = readTable("1;2\n3;4");
  assert.deepEqual(usual(CHANNELS, without), { t: null, x: [0, 1] });
  assert.deepEqual(readCurve(CHANNELS, without, usual(CHANNELS, without)).curve, { values: [[1, 2], [3, 4]] });
  const narrow = readTable("x\n1\n2");
  assert.throws(() => readCurve(CHANNELS, narrow, usual(CHANNELS, narrow)), says(/2 values at each t, and the file has 1 column\./));
});

test("a row, across or down", () => {
  for (const text of ["1,2,3", "1\n2\n3", "a;b;c\n1;2;3"]) assert.deepEqual(readRow(ROWS, readTable(text)).curve.values, [1, 2, 3]);
  assert.throws(() => readRow(ROWS, readTable("1,2")), says(/3 numbers, and the file has 2/));
  assert.throws(() => readRow(ROWS, readTable("1,2,3\n4,5,6")), says(/2 lines/));
  const named = structuredClone(ROWS);
  named.encoder.table = { named: true, columns: [{ key: "age", low: 0, high: 9, categories: [] }, { key: "sex", low: 0, high: 1, categories: ["f", "m"] }] };
  assert.deepEqual(readRow(named, readTable("sex,age,name\nm,7,Ann")).curve.values, [7, "m"]);
  assert.deepEqual(readRow(named, readTable("sex,age,name\nm,,Ann")).cells, ["age: unknown", "sex: m"]);
  assert.throws(() => readRow(named, readTable("sex,name\nm,Ann")), says(/column "age"/));
  named.encoder.table.columns[0].key = 2;
  assert.deepEqual(readRow(named, readTable("sex;x;y\nm;7;8,5")).curve.values, [8.5, "m"]);
  assert.throws(() => readRow(named, readTable("sex,x\nm,7")), says(/column "2"/));
  named.encoder.table.columns[0].key = "age";
  assert.throws(() => readRow(named, readTable("sex,age\nx,7")), says(/"x" is none of: f, m/));
});
