/** One file of a zip archive, piece by piece. */

import { Unreadable } from "./unreadable.ts";

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const MOST_ENTRIES = 100_000;
const MOST_RATIO = 100; // exports shrink to a 10th or a 50th of their size; deflate can reach 1,000
const FREE = 16 << 20; // bytes that may come out before the ratio counts

export type Entry = { name: string; method: number; packed: number; size: number; at: number };

/** What an archive holds, by its directory at the end. */
export async function entriesOf(file: Blob): Promise<Entry[]> {
  const tail = await bytes(file, Math.max(0, file.size - 65_557), file.size);
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== END) end -= 1;
  if (end < 0) throw new Unreadable("file.damaged");
  const [count, size, at] = [tail.getUint16(end + 10, true), tail.getUint32(end + 12, true), tail.getUint32(end + 16, true)];
  if (count > MOST_ENTRIES || at + size > file.size) throw new Unreadable("file.damaged");
  const directory = await bytes(file, at, at + size);
  const found: Entry[] = [];
  for (let k = 0, here = 0; k < count; k += 1) {
    if (here + 46 > directory.byteLength || directory.getUint32(here, true) !== ENTRY) throw new Unreadable("file.damaged");
    const [name, extra, comment] = [28, 30, 32].map((place) => directory.getUint16(here + place, true));
    found.push({
      name: new TextDecoder().decode(new Uint8Array(directory.buffer, directory.byteOffset + here + 46, Math.min(name!, directory.byteLength - here - 46))),
      method: directory.getUint16(here + 10, true),
      packed: directory.getUint32(here + 20, true),
      size: directory.getUint32(here + 24, true),
      at: directory.getUint32(here + 42, true),
    });
    here += 46 + name! + extra! + comment!;
  }
  return found;
}

async function bytes(file: Blob, from: number, to: number): Promise<DataView> {
  return new DataView(await file.slice(from, to).arrayBuffer());
}

/** The contents of an entry as a stream that ends where more comes out than an export holds. */
export async function contents(file: Blob, { method, packed, size, at }: Entry): Promise<ReadableStream<Uint8Array>> {
  if (size > FREE && size > packed * MOST_RATIO) throw new Unreadable("file.bomb");
  const head = await bytes(file, at, at + 30);
  if (head.byteLength < 30 || ![0, 8].includes(method)) throw new Unreadable("file.damaged");
  const start = at + 30 + head.getUint16(26, true) + head.getUint16(28, true);
  const stored = file.slice(start, start + packed).stream() as ReadableStream<Uint8Array>;
  let [taken, out] = [0, 0];
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      taken += piece.byteLength;
      controller.enqueue(piece);
    },
  });
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      out += piece.byteLength;
      if (out > FREE && out > taken * MOST_RATIO) throw new Unreadable("file.bomb");
      controller.enqueue(piece);
    },
  });
  if (method === 0) return stored.pipeThrough(count).pipeThrough(limit);
  const unpack = new DecompressionStream("deflate-raw") as unknown as TransformStream<Uint8Array, Uint8Array>;
  return stored.pipeThrough(count).pipeThrough(unpack).pipeThrough(limit);
}
