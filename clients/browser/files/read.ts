/** A file of a person's measurements, whatever device or app wrote it. Nothing of it leaves this device. */

import { readJson, refuseWide } from "./json.ts";
import { inOrder, type Series } from "./series.ts";
import { joined, readTable, unfolded, type Table } from "./table.ts";
import { Zone } from "./times.ts";
import { english, Unreadable, type Said } from "./unreadable.ts";
import { apple, Collected, Scanner, track } from "./xml.ts";
import { contents, entriesOf } from "./zip.ts";

/** What a file holds: columns of a table, or series of measurements; and how it was read. */
export type Recording = { format: string; table: Table | null; series: Series[]; zone: Zone; how: Said; said: string };

const MOST_BYTES = 64 << 20; // of a file that is read as a whole
const READABLE = /\.(csv|tsv|json|xml|gpx|tcx)$/i;

/**
 * Reads a table (CSV, TSV), a Fitbit, Google Fit or Oura JSON file, an Apple Health export (XML or zip), a GPX or TCX
 * track. XML is read piece by piece, so that its size does not matter.
 *
 * @param zone where clocks stood, as "Europe/Berlin"; by default the device's own. It matters for times in UTC.
 */
export async function readFile(file: Blob, { zone }: { zone?: string } = {}): Promise<Recording> {
  return read(file.stream() as ReadableStream<Uint8Array>, file, new Zone(zone));
}

async function read(stream: ReadableStream<Uint8Array>, archive: Blob | null, zone: Zone): Promise<Recording> {
  const pieces = stream.getReader();
  const first = await piece(pieces);
  if (!first) throw new Unreadable("file.empty");
  if (first[0] === 0x50 && first[1] === 0x4b && archive) {
    await pieces.cancel();
    return unpacked(archive, zone);
  }
  const decoder = decoderOf(first);
  const start = decoder.decode(first, { stream: true });
  const text = start.trimStart();
  if (text.startsWith("<")) return readXml(start, pieces, decoder, zone);
  const whole = await rest(start, pieces, decoder, first.byteLength);
  if (text.startsWith("{") || (text.startsWith("[") && !/^\[[\d.,\s]*\][;,]/.test(text))) return readDocument(whole, zone);
  const table = joined(unfolded(readTable(whole)));
  return { format: "CSV", table, series: [], zone, how: table.how, said: table.said };
}

async function piece(pieces: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | null> {
  for (;;) {
    const { done, value } = await pieces.read().catch((error: unknown) => {
      throw error instanceof Unreadable ? error : new Unreadable("file.damaged");
    });
    if (done) return null;
    if (value.byteLength > 0) return value;
  }
}

/** UTF-8, or what a byte order mark names. */
function decoderOf([a, b]: Uint8Array): TextDecoder {
  return new TextDecoder(a === 0xff && b === 0xfe ? "utf-16le" : a === 0xfe && b === 0xff ? "utf-16be" : "utf-8");
}

async function rest(start: string, pieces: ReadableStreamDefaultReader<Uint8Array>, decoder: TextDecoder, size: number): Promise<string> {
  const found = [start];
  for (let next = await piece(pieces); next; next = await piece(pieces)) {
    if ((size += next.byteLength) > MOST_BYTES) {
      await pieces.cancel();
      throw new Unreadable("file.large", { most: MOST_BYTES >> 20 });
    }
    found.push(decoder.decode(next, { stream: true }));
  }
  return found.join("") + decoder.decode();
}

async function readXml(start: string, pieces: ReadableStreamDefaultReader<Uint8Array>, decoder: TextDecoder, zone: Zone): Promise<Recording> {
  const found = new Collected();
  const handler = { open: (_name: string, _tag: string): void => {}, close: (_name: string, _text: string): void => {} };
  let format = "";
  const scanner = new Scanner({
    open(name, tag) {
      if (format === "") {
        format = { HealthData: "Apple Health", gpx: "GPX", TrainingCenterDatabase: "TCX" }[name] ?? "";
        if (format === "") throw new Unreadable("file.xml");
        Object.assign(handler, format === "Apple Health" ? apple(found, zone) : track(found, zone));
      }
      handler.open(name, tag);
    },
    close: (name, text) => handler.close(name, text),
  });
  try {
    scanner.feed(start);
    for (let next = await piece(pieces); next; next = await piece(pieces)) scanner.feed(decoder.decode(next, { stream: true }));
    scanner.feed(decoder.decode());
    scanner.done();
  } catch (error) {
    await pieces.cancel().catch(() => undefined);
    throw error;
  }
  return recording(format, found, zone);
}

function readDocument(text: string, zone: Zone): Recording {
  refuseWide(text);
  let document: unknown;
  try {
    document = JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    throw new Unreadable("file.damaged");
  }
  const found = new Collected();
  readJson(document, found, zone);
  return recording("JSON", found, zone);
}

async function unpacked(archive: Blob, zone: Zone): Promise<Recording> {
  const entries = (await entriesOf(archive)).filter(({ name }) => READABLE.test(name) && !/(^|\/)(__MACOSX\/|\._)|_cda\.xml$/i.test(name));
  const health = entries.filter(({ name }) => /^[^/]*(\/[^/]*)?\.xml$/i.test(name)); // the name is in the phone's language
  const [chosen, ...others] = health.length === 1 ? health : entries;
  if (!chosen) throw new Unreadable("file.archive-none");
  if (others.length > 0) throw new Unreadable("file.archive", { count: others.length + 1 });
  return read(await contents(archive, chosen), null, zone);
}

function recording(format: string, found: Collected, zone: Zone): Recording {
  const series = [...found.series.values()].map(inOrder).filter(({ times }) => times.length > 0);
  series.sort((a, b) => (a.name < b.name ? -1 : 1));
  if (series.length === 0) throw new Unreadable("file.nothing");
  const points = series.reduce((sum, { times }) => sum + times.length, 0);
  const how: Said = { code: "file.read-series", parameters: { format, series: series.length, points } };
  return { format, table: null, series, zone, how, said: english(how) };
}
