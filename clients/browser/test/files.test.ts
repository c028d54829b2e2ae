/** Files as people have them, and what is said about those that cannot be used. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";

import { column, dayCurve, daysOf, numberOf, readFile, readTable, seriesOf, Unreadable, Zone, type Choice, type Recording } from "../files/index.ts";
import { readCurve as readRecording, readRow as readRecordedRow, Unfit, usual as usually, type Chosen, type Read } from "../page/reading.ts";
import { de } from "../words/de.ts";
import { en } from "../words/en.ts";
import { fill } from "../words/words.ts";

const plans = JSON.parse(readFileSync("../vectors/plans.json", "utf8"));
const CURVES = plans.answers.plan; // t from 0 to 24
const ROWS = plans.vectors.plan; // three numbers
const CHANNELS = plans.channels.plan; // two of them, t from 0 to 1
const both = { t: 0, x: [1] };

const spoken = ({ code, parameters }: { code: string; parameters: any }) => fill(en, "en", code, parameters);
const says = (words: RegExp) => (error: unknown) =>
  words.test(error instanceof Unreadable ? error.message : error instanceof Unfit ? spoken(error.sentence) : "");

const of = (table: any): Recording => ({ format: "CSV", table, series: [], zone: new Zone("UTC"), how: table.how, said: table.said });
const inEnglish = (read: Read) => ({ ...read, said: read.said.map(spoken), cells: read.cells.map(({ name, value }) => `${name}: ${value ?? "unknown"}`) });
const readCurve = (plan: any, table: any, chosen: Omit<Chosen, "day">) => inEnglish(readRecording(plan, of(table), { day: null, ...chosen }));
const readRow = (plan: any, table: any) => inEnglish(readRecordedRow(plan, table));
const usual = (plan: any, table: any) => usually(plan, of(table));

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
  assert.throws(() => readTable("PK\u0003\u0004"), says(/cannot be read/));
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
  assert.deepEqual((found.curve as any).points, [6.5, 18], "the day with the most measurements");
  assert.match(found.said.join(" "), /Used: Monday, November 16, 2026, one of the 2 days.*hours of the day.*2 points/);
  assert.deepEqual((readCurve(CURVES, readTable("06:15 +0100;1\n7:00;2"), both).curve as any).points, [6.25, 7]);
  assert.throws(() => readCurve(CURVES, readTable("time,pulse\n06:15,1\nlater,2"), both), says(/times in "time" cannot be read \(line 2 below/));
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
  assert.deepEqual(usual(CHANNELS, table), { t: 0, x: [1, 2], day: null });
  const found = readCurve(CHANNELS, table, usual(CHANNELS, table));
  assert.deepEqual(found.curve, { points: [0, 0.5, 1], values: [[0.5, 1], [NaN, 2], [1, 3]] });
  assert.deepEqual(found.lines, [[0.5, NaN, 1], [1, 2, 3]]);
  const without = readTable("1;2\n3;4");
  assert.deepEqual(usual(CHANNELS, without), { t: null, x: [0, 1], day: null });
  assert.deepEqual(readCurve(CHANNELS, without, usual(CHANNELS, without)).curve, { values: [[1, 2], [3, 4]] });
  const narrow = readTable("x\n1\n2");
  assert.throws(() => readCurve(CHANNELS, narrow, usual(CHANNELS, narrow)), says(/2 values at each time, and the file has 1 column\./));
});

test("a row, across or down", () => {
  for (const text of ["1,2,3", "1\n2\n3", "a;b;c\n1;2;3"]) assert.deepEqual(readRow(ROWS, readTable(text)).curve.values, [1, 2, 3]);
  assert.throws(() => readRow(ROWS, readTable("1,2")), says(/3 numbers, and the file has 2/));
  assert.throws(() => readRow(ROWS, readTable("1,2,3\n4,5,6")), says(/2 rows/));
  const named = structuredClone(ROWS);
  named.encoder.table = { named: true, columns: [{ key: "age", low: 0, high: 9, categories: [] }, { key: "sex", low: 0, high: 1, categories: ["f", "m"] }] };
  assert.deepEqual(readRow(named, readTable("sex,age,name\nm,7,Ann")).curve.values, [7, "m"]);
  assert.deepEqual(readRow(named, readTable("sex,age,name\nm,,Ann")).cells, ["age: unknown", "sex: m"]);
  assert.throws(() => readRow(named, readTable("sex,name\nm,Ann")), says(/column "age"/));
  named.encoder.table.columns[0].key = 2;
  assert.deepEqual(readRow(named, readTable("sex;x;y\nm;7;8,5")).curve.values, [8.5, "m"]);
  assert.throws(() => readRow(named, readTable("sex,x\nm,7")), says(/column "2"/));
  named.encoder.table.columns[0].key = "age";
  assert.throws(() => readRow(named, readTable("sex,age\nx,7")), says(/"x" is none of f or m/));
});

const { zone, cases } = JSON.parse(readFileSync("../samples/expected.json", "utf8"));
const sample = (name: string) => new Blob([readFileSync(`../samples/${name}`)]);

for (const { file, format, series, wanted, name, days, day, hours, values } of cases) {
  test(`an export: ${file}, ${wanted}, ${day}`, async () => {
    const found = await readFile(sample(file), { zone });
    assert.equal(found.format, format);
    assert.deepEqual(seriesOf(found).map((one) => one.name), series);
    const choice: Choice = ["average", "all"].includes(day) ? day : { day };
    const curve = dayCurve(found, { wanted, day: choice });
    assert.equal(curve.name, name);
    assert.equal(daysOf(seriesOf(found).find((one) => one.name === name)!).length, days);
    assert.deepEqual(curve.values, values);
    assert.equal(curve.hours.length, hours.length);
    curve.hours.forEach((hour, k) => assert(Math.abs(hour - hours[k]) < 1e-6, `${hour} ${hours[k]}`)); // milliseconds
  });
}

test("what is chosen at first is what the study names, never an Id or an end", async () => {
  const pulse = { ...CURVES, title: "Pulse over a day" };
  const first = async (file: string, plan: any = pulse, x = "") => {
    const found = await readFile(sample(file), { zone });
    const { t, x: [place] } = usually(plan, found, { t: "h", x });
    const names = found.table?.names ?? found.series.map((one) => one.name);
    return [t === null ? null : names[t], place == null ? null : names[place]];
  };
  assert.deepEqual(await first("fitbit-heart-rate.csv"), ["Time", "Value"]);
  assert.deepEqual(await first("unix.csv"), ["unix_ms", "pulse"]);
  assert.deepEqual(await first("apple-export.xml"), [null, "heart rate"]);
  assert.deepEqual(await first("apple-export.xml", { ...CURVES, title: "Steps" }), [null, "step count"]);
  assert.deepEqual(await first("apple-export.xml", { ...CURVES, title: "A study" }), [null, null], "then the person chooses");
  assert.deepEqual(await first("apple-export.xml", { ...CURVES, title: "A study" }, "bpm"), [null, "heart rate"]);
  assert.deepEqual(await first("german.csv"), ["Zeitpunkt", "Puls"]);
  assert.match((await first("samsung-heart-rate.csv")).join(), /start_time,.*heart_rate$/);
});

test("minutes of a track begin with it, hours of a day with midnight", async () => {
  const found = await readFile(sample("garmin.tcx"), { zone });
  const plan = structuredClone(CURVES);
  plan.encoder.basis.domain_range = [0, 600];
  const read = readRecording(plan, found, { t: null, x: [1], day: null }, { t: "min", x: "" });
  assert.deepEqual(read.points.slice(0, 2), [0, 345]);
  assert.match(read.said.map(spoken).join(" "), /from the beginning of the recording.*clock times in Europe\/Berlin/);
});

function zipped(entries: { name: string; packed: Buffer; size: number; method?: number }[]): Blob {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const { name, packed, size, method = 8 } of entries) {
    const head = Buffer.alloc(30);
    head.writeUInt32LE(0x04034b50, 0);
    head.writeUInt16LE(method, 8);
    head.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(method, 10);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(size, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(at, 42);
    parts.push(head, Buffer.from(name), packed);
    directory.push(entry, Buffer.from(name));
    at += 30 + name.length + packed.length;
  }
  const all = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(all.length, 12);
  end.writeUInt32LE(at, 16);
  return new Blob([...parts, all, end].map((part) => new Uint8Array(part)));
}

const numbered = (entry: (k: number) => string) => Array.from({ length: 1e6 }, (_, k) => entry(k)).join();
const many = (text: string, count: number) => text.repeat(count);
const RECORD = ' <Record type="HKQuantityTypeIdentifierHeartRate" unit="count/min" startDate="2026-11-16 07:30:00 +0100" value="61"/>\n';
const bomb = () => deflateRawSync(Buffer.concat([Buffer.from("<HealthData>"), Buffer.alloc(64 << 20, " ")]), { level: 1 });

const HOSTILE: Record<string, [() => Blob, RegExp]> = {
  "a zip bomb that tells its size": [() => zipped([{ name: "export.xml", packed: bomb(), size: 64 << 20 }]), /far more data/],
  "a zip bomb that lies about its size": [() => zipped([{ name: "export.xml", packed: bomb(), size: 1000 }]), /far more data/],
  "entities": [() => new Blob(['<!DOCTYPE HealthData [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><HealthData>&b;</HealthData>']), /entities/],
  "an entity after the doctype's name": [() => new Blob(["<!DOCTYPE gpx [\n<!ENTITY lol SYSTEM \"file:///etc/passwd\">]><gpx>&lol;</gpx>"]), /entities/],
  "a million columns": [() => new Blob([many("x,", 1e6), "\n", many("1,", 1e6)]), /more than 5,000 columns/],
  "a million quoted columns": [() => new Blob([many('"x",', 1e6), "\n"]), /more than 5,000 columns/],
  "twenty million cells": [() => new Blob([many(`${many("1,", 4999)}1\n`, 4000)]), /more than 5,000,000 measurements/],
  "a tag without an end": [() => new Blob(["<HealthData ", many('a="b" ', 1e6)]), /damaged/],
  "quotes without an end": [() => new Blob(["<HealthData>", many('<a b=">', 1e6 + 1)]), /kind of XML|damaged|no numbers/],
  "a million fields": [() => new Blob(["{", numbered((k) => `"${k}":1`), "}"]), /more than 5,000 columns or fields/],
  "a million fields beside a time": [() => new Blob(['[{"time":"2026-11-16T07:30:00",', numbered((k) => `"k\\"${k}":"a:b"`), "}]"]), /more than 5,000 columns or fields/],
  "a million objects": [() => new Blob(["{", numbered((k) => `"${k}":{"a\\\\":{}}`), "}"]), /more than 5,000 columns or fields/],
  "nested JSON": [() => new Blob([many("[", 1e6)]), /damaged/],
  "nested JSON that ends": [() => new Blob([many("[", 5e3), many("]", 5e3)]), /no numbers with times/],
  "another XML": [() => new Blob(["<svg><path/></svg>"]), /kind of XML/],
  "an archive cut off": [() => new Blob(["PK\u0003\u0004", many("x", 1e5)]), /damaged/],
  "an archive of many": [() => zipped(["a.csv", "b.csv"].map((name) => ({ name, packed: Buffer.from("t,x"), size: 3, method: 0 }))), /2 readable files/],
  "nothing readable in an archive": [() => zipped([{ name: "photo.jpg", packed: Buffer.from("x"), size: 1, method: 0 }]), /no export/],
  "bytes": [() => new Blob([new Uint8Array([0, 1, 2, 3, 0xff])]), /cannot be read/],
};

for (const [name, [make, words]] of Object.entries(HOSTILE)) {
  test(`refused within two seconds: ${name}`, async () => {
    const file = make();
    const start = process.cpuUsage(); // other work on the machine does not count
    await assert.rejects(readFile(file), says(words));
    const { user, system } = process.cpuUsage(start);
    assert(user + system < 2e6, `${(user + system) / 1e3} ms`);
  });
}

test("fields are counted in each object, and not in strings", async () => {
  const entry = (k: number) => `{"time":"2026-11-16T07:30:00Z","heart rate":${60 + 2 * (k % 2)},"note":"a:b::{\\"::"}`;
  const found = await readFile(new Blob(["[", Array.from({ length: 6e3 }, (_, k) => entry(k)).join(), "]"]), { zone });
  assert.deepEqual(found.series.map(({ name, values }) => [name, values]), [["heart rate", [61]]]);
});

test("a long export is read piece by piece", async () => {
  const piece = new TextEncoder().encode(many(RECORD, 1000));
  let sent = 0;
  let most = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent === 0) controller.enqueue(new TextEncoder().encode("<?xml version='1.0'?>\n<HealthData>"));
      else if (sent <= 500) controller.enqueue(piece);
      else {
        controller.enqueue(new TextEncoder().encode("</HealthData>"));
        controller.close();
      }
      sent += 1;
      most = Math.max(most, process.memoryUsage().arrayBuffers);
    },
  });
  const start = process.memoryUsage().arrayBuffers;
  const found = await readFile({ stream: () => stream } as Blob, { zone }); // 58 MB
  assert.deepEqual(found.series.map(({ name, times, values }) => [name, times.length, values]), [["heart rate", 1, [61]]]);
  assert(most - start < 20 << 20, `${(most - start) >> 20} MB at once`);
});

test("all languages have the same fields in their messages", () => {
  const fields = (text: string) => [...new Set([...text.matchAll(/\{(\w+)/g)].map(([, name]) => name))].sort().join();
  assert.deepEqual(Object.keys(de).sort(), Object.keys(en).sort());
  for (const [code, text] of Object.entries(en)) assert.equal(fields(de[code as keyof typeof en]), fields(text), code);
});

test("numbers, plurals, days and lists are written as in the language", () => {
  const parameters = { seen: 1, low: 0.5, high: 24, which: "" };
  assert.equal(fill(de, "de", "read.points", parameters), "1 Punkt zwischen t = 0,5 und t = 24.");
  assert.equal(fill(en, "en", "read.points", { ...parameters, seen: 1234 }), "1,234 points between t = 0.5 and t = 24.");
  assert.equal(fill(de, "de", "read.day", { day: { day: "2026-11-16" } }), "Verwendet: Montag, 16. November 2026.");
  assert.equal(fill(en, "en", "read.category", { cell: "x", known: { listed: ["a", "b", "c"], by: "or" } }), '"x" is none of a, b, or c.');
});

test("a date and a time of day in two columns are one time", async () => {
  const pulse = { ...CURVES, title: "Pulse over a day" };
  for (const [file, clock, hours] of [
    ["two-columns.csv", "Datum Uhrzeit", [0.5, 6.25, 7.5 + 5 / 3600, 12]],
    ["two-columns-us.csv", "Start date Start time", [0.5, 6.25, 19.5 + 5 / 3600]],
  ] as const) {
    const found = await readFile(sample(file), { zone });
    const chosen = usually(pulse, found, { t: "h", x: "" });
    assert.equal(found.table!.names[chosen.t!], clock);
    const read = readRecording(pulse, found, chosen, { t: "h", x: "" });
    read.points.forEach((point, k) => assert(Math.abs(point - hours[k]!) < 1e-6, `${point} ${hours[k]}`));
    assert.equal(read.days.length, 2);
  }
  const gaps = await readFile(new Blob(["Date,Time,Pulse\n2026-11-16,07:30,60\n2026-11-16,,61\n2026-11-16,08:30,62\n"]));
  assert.throws(() => seriesOf(gaps), says(/times in "Date Time" cannot be read \(line 2/));
  const plain = await readFile(new Blob(["Date,Duration,Steps\n2026-11-16,00:45,600\n2026-11-17,00:30,610\n"]));
  assert.deepEqual(plain.table!.names, ["Date", "Duration", "Steps"], "a duration is not a time of day");
});
