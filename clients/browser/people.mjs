/** Several people with the browser's client, each with a device of their own: rows of JSON on stdin. */

import { readFileSync } from "node:fs";
import { Client, MemoryStore, setLimit } from "../../src/dpfda/collector/pages/static/client.js";

const { url, hash, people } = JSON.parse(readFileSync(0, "utf8"));

async function takePart({ values, label, token }) {
  const store = new MemoryStore();
  await setLimit(store, 100);
  const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds / 10));
  const client = new Client({ url, store, sleep, patience: 600_000 });
  await client.join(hash, { mostEpsilon: 100, invitation: token });
  const body = JSON.parse(await client.prepare(hash, { curve: { values }, label }));
  return { receipt: await client.send(hash), phase: body.phase };
}

console.log(JSON.stringify(await Promise.all(people.map(takePart))));
