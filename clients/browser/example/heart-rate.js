/** Takes part with one day of a watch's heart rate, from the export of whatever watch it is. */

import { BrowserStore, budget, Client, setLimit } from "@dpfda/client";
import { dayCurve, readFile } from "@dpfda/client/files";

const find = (id) => document.querySelector(`#${id}`);
const told = new URLSearchParams(location.hash.slice(1));
const hash = told.get("study") ?? "";

/** The day with the most measurements: hours since midnight, and beats a minute. Throws words for the person. */
export async function day(file) {
  const { hours, values } = dayCurve(await readFile(file), { wanted: "heart rate" });
  return { points: hours, values };
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
      const curve = await day(find("file").files[0]); // throws before anything is spent
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
