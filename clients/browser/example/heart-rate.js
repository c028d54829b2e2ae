/** Takes part with one day of a watch's heart rate: a column of times, a column of beats a minute. */

import { BrowserStore, budget, Client, setLimit } from "@dpfda/client";
import { column, hours, readTable } from "@dpfda/client/csv";

const find = (id) => document.querySelector(`#${id}`);
const told = new URLSearchParams(location.hash.slice(1));
const hash = told.get("study") ?? "";

/** The first day of an export: hours since midnight, and beats a minute. */
export function firstDay(text) {
  const table = readTable(text);
  const time = table.names.findIndex((name) => /time|date/i.test(name));
  const rate = table.names.findIndex((name) => /heart|pulse|bpm|rate/i.test(name));
  const points = time < 0 ? null : hours(table, time);
  if (points === null || rate < 0) throw new Error("The file needs a column of times and one of heart rates.");
  const values = column(table, rate);
  const first = points.flatMap((t, k) => (t < 24 ? [k] : []));
  return { points: first.map((k) => points[k]), values: first.map((k) => values[k]) };
}

async function begin() {
  const store = await BrowserStore.open();
  const client = new Client({ url: told.get("collector") ?? location.origin, store });
  const plan = await client.fetchPlan(hash);
  find("title").textContent = plan.title;
  plan.classes.forEach((label, k) => find("label").add(new Option(String(label), String(k))));
  find("form").addEventListener("submit", (event) => {
    event.preventDefault();
    void saying(async () => {
      const curve = firstDay(await find("file").files[0].text()); // throws before anything is spent
      const limit = (await budget(store)).limit ?? Number(find("limit").value);
      await setLimit(store, limit);
      await client.join(hash, { mostEpsilon: plan.epsilon });
      find("bytes").textContent = await client.prepare(hash, { curve, label: plan.classes[Number(find("label").value)] });
      find("send").hidden = false;
      return `${curve.values.length} points became these bytes. ε = ${plan.epsilon} is spent.`;
    });
  });
  find("send").addEventListener("click", () => void saying(async () => `Sent. Receipt: ${await client.send(hash)}`));
}

/** What became of it, or what went wrong: messages of the client never hold data. */
async function saying(work) {
  try {
    find("said").textContent = await work();
  } catch (error) {
    find("said").textContent = error.message;
  }
}

await saying(async () => (await begin(), "Choose a file."));
