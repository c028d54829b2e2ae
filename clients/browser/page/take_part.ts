/** The page on which somebody takes part: everything happens here, on their device. */

import { assumptions, BrowserStore, budget, Client, Refused, setLimit, type Plan, type Store } from "../src/index.ts";
import { readTable, Unreadable, type Table } from "./csv.ts";
import { isCurve, readCurve, readRow, unreadable, type Read } from "./reading.ts";

const find = <T extends Element>(id: string): T => document.querySelector<T>(`#${id}`)!;
const show = (id: string, visible = true): void => void find(id).toggleAttribute("hidden", !visible);
const say = (id: string, text: string): void => void (find(id).textContent = text);

const hash = find<HTMLElement>("take-part").dataset.hash!;
const invitation = new URLSearchParams(location.hash.slice(1)).get("invitation") ?? undefined;

const WEAK = 0.9; // as often is the truth told that one cannot deny it with a straight face

let table: Table | null = null;
let read: Read | null = null;
let wrong: unknown = null; // with the file that was chosen last

async function begin(): Promise<void> {
  const store = await BrowserStore.open();
  const person = new Client({ url: location.origin, store });
  const plan = await person.fetchPlan(hash);
  describe(plan);
  await describeBudget(store, plan);
  const letter = await store.change((state) => state.letters[hash]);
  if (letter?.receipt) return finished(letter.receipt, letter.body!);
  if (letter?.body) return drawn(person, letter.body, true);
  const spent = await store.change((state) => hash in state.spent);
  const reason = spent ? "This browser has answered this study before: one answer is all it gets." : unreadable(plan);
  if (reason) return say("problem", reason);
  show("yours");
  find<HTMLInputElement>("file").addEventListener("change", () => void opened(plan));
  for (const id of ["column-t", "column-x"]) find(id).addEventListener("change", () => checked(plan));
  find("form").addEventListener("input", () => checked(plan));
  find("form").addEventListener("submit", (event) => {
    event.preventDefault();
    void guarded(() => answered(store, person, plan));
  });
  checked(plan);
}

function describe(plan: Plan): void {
  document.title = plan.title || "A study";
  say("title", plan.title || "A study without a title");
  const likely = 1 / (1 + Math.exp(-plan.epsilon));
  const times = Math.exp(plan.epsilon).toPrecision(3);
  say("asked", isCurve(plan)
    ? "You are asked one thing about a curve of yours, such as a measurement over a day, and about your label. Your device answers it by chance."
    : "You are asked one thing about a row of your numbers and about your label. Your device answers it by chance.");
  const [whatever, other] = {
    both: ["your data are", "anybody else's"],
    labels: ["your label is", "another label"],
  }[plan.protects as string] ?? ["your data are", "other data and the same label"];
  say("promise", `ε = ${plan.epsilon}: whatever ${whatever}, your reply is at most ${times} times as likely as with ${other}. `
    + `If it were a single yes/no question, this is how often the reply would say yes:`);
  chance("if-yes", "if your true answer is yes", likely);
  chance("if-no", "if your true answer is no", 1 - likely);
  say("verdict", likely > WEAK
    ? "Whoever reads the reply can be rather sure of your answer: this is weak protection."
    : "Whoever reads the reply cannot be sure of your answer.");
  const [told, hidden] = plan.protects === "labels" ? ["data", "label"] : ["label", "data"];
  say("stays", plan.protects === "both"
    ? "Your data and your label stay on this device: the reply is randomized, for both together."
    : `Your ${told} would leave as ${plan.protects === "labels" ? "they are" : "it is"}: this study takes for granted that ${assumptions(plan)[0]}. Only your ${hidden} ${plan.protects === "labels" ? "is" : "are"} protected.`);
  say("people", `${plan.n_people} people are wanted. The study is named by its hash, ${hash.slice(0, 16)}…, which this page has checked.`);
  const labels = find<HTMLSelectElement>("label");
  if (plan.target_range) {
    show("labels", false);
    show("numbers");
    say("target-range", `Your number, from ${plan.target_range[0]} to ${plan.target_range[1]}`);
  } else {
    plan.classes.forEach((label, k) => labels.add(new Option(String(label), String(k))));
  }
  show("accept", plan.protects !== "both");
  say("accept-words", `I know that ${assumptions(plan)[0] ?? ""}`);
}

function chance(id: string, words: string, share: number): void {
  find<HTMLProgressElement>(id).value = share;
  say(`${id}-words`, `${Math.round(100 * share)} times out of 100, ${words}`);
}

async function describeBudget(store: Store, plan: Plan): Promise<void> {
  const { limit, spent, studies } = await budget(store);
  say("spent", studies
    ? `This browser has spent ε = ${spent} in ${studies} ${studies === 1 ? "study" : "studies"}, of at most ε = ${limit}.`
    : "This browser has spent nothing yet.");
  const field = find<HTMLInputElement>("limit");
  field.value = String(limit ?? Math.max(5, Math.ceil(plan.epsilon)));
  field.disabled = limit !== null;
}

async function opened(plan: Plan): Promise<void> {
  table = null;
  wrong = null;
  const file = find<HTMLInputElement>("file").files?.[0];
  if (file) {
    try {
      if (file.size > 8 << 20) throw new Unreadable("The file is larger than 8 MB.");
      table = readTable(await file.text());
      offerColumns(plan, table);
    } catch (error) {
      wrong = error;
    }
  }
  checked(plan);
}

function offerColumns(plan: Plan, { names }: Table): void {
  const [t, x] = [find<HTMLSelectElement>("column-t"), find<HTMLSelectElement>("column-x")];
  for (const list of [t, x]) list.replaceChildren(...names.map((name, k) => new Option(name, String(k))));
  t.prepend(new Option("equal distances", ""));
  t.value = names.length > 1 ? "0" : "";
  x.value = names.length > 1 ? "1" : "0";
  show("columns", isCurve(plan) && names.length > 1);
}

/** Whether all is there: said before anybody is asked for anything, with nothing sent or spent. */
function checked(plan: Plan): void {
  read = null;
  say("problem", "");
  say("read", "");
  try {
    if (wrong) throw wrong;
    if (table) {
      const t = find<HTMLSelectElement>("column-t").value;
      read = isCurve(plan)
        ? readCurve(plan, table, { t: t === "" ? null : Number(t), x: Number(find<HTMLSelectElement>("column-x").value) })
        : readRow(plan, table);
      say("read", read.said.join(" "));
    }
  } catch (error) {
    problem(error);
  }
  draw(find("curve"), read, isCurve(plan));
  const accepted = plan.protects === "both" || find<HTMLInputElement>("accepted").checked;
  find<HTMLButtonElement>("yes").disabled = !(read && label(plan) !== undefined && accepted);
}

/** What was chosen; undefined where nothing was, or what is no number of the range. */
function label(plan: Plan): unknown {
  if (plan.target_range) {
    const text = find<HTMLInputElement>("number").value.replace(",", ".");
    const value = text === "" ? NaN : Number(text);
    return value >= plan.target_range[0] && value <= plan.target_range[1] ? value : undefined;
  }
  const chosen = find<HTMLSelectElement>("label").value;
  return chosen === "" ? undefined : plan.classes[Number(chosen)];
}

function draw(picture: Element, shown: Read | null, connected: boolean): void {
  show("curve", shown !== null && shown.values.length > 0);
  if (!shown) return;
  const kept = shown.values.map((x, k) => [shown.points[k] ?? k, x] as const).filter(([t, x]) => Number.isFinite(t) && Number.isFinite(x));
  const scale = (numbers: number[], from: number, to: number) => {
    const [least, most] = [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))];
    return (value: number) => (most > least ? from + ((to - from) * (value - least)) / (most - least) : (from + to) / 2).toFixed(1);
  };
  const [across, down] = [scale(kept.map(([t]) => t), 8, 312), scale(kept.map(([, x]) => x), 92, 8)];
  const places = kept.map(([t, x]) => `${across(t)},${down(x)}`);
  picture.innerHTML = connected && places.length > 1
    ? `<polyline class="line" points="${places.join(" ")}"/>`
    : places.map((place) => `<circle class="dot" r="3" cx="${place.split(",")[0]}" cy="${place.split(",")[1]}"/>`).join("");
}

async function answered(store: Store, person: Client, plan: Plan): Promise<void> {
  await setLimit(store, Number(find<HTMLInputElement>("limit").value));
  const reason = await person.refusal(hash, plan);
  if (reason) throw new Refused("budget", reason);
  const accepts = find<HTMLInputElement>("accepted").checked ? assumptions(plan) : [];
  await person.join(hash, { mostEpsilon: plan.epsilon, accepts, ...(invitation ? { invitation } : {}) });
  const body = await person.prepare(hash, { curve: read!.curve, label: label(plan) });
  await describeBudget(store, plan);
  drawn(person, body, false);
}

function drawn(person: Client, body: string, again: boolean): void {
  show("yours", false);
  show("leaves");
  say("bytes", body);
  say("again", again ? "This reply was drawn before and may not have arrived: the same bytes are sent again." : "");
  find("send").addEventListener("click", () => void guarded(async () => finished(await person.send(hash), body)));
}

function finished(receipt: string, body: string): void {
  for (const id of ["yours", "leaves"]) show(id, false);
  show("done");
  say("receipt", receipt);
  say("sent", body);
}

/** One step at a time; what goes wrong is said, and can be tried again. */
async function guarded(work: () => Promise<void>): Promise<void> {
  const buttons = document.querySelectorAll<HTMLButtonElement>("button");
  buttons.forEach((button) => (button.disabled = true));
  say("problem", "");
  try {
    await work();
  } catch (error) {
    problem(error);
  }
  buttons.forEach((button) => (button.disabled = false));
}

function problem(error: unknown): void {
  const known = error instanceof Refused || error instanceof Unreadable;
  say("problem", known ? error.message : "Something went wrong on this page; nothing was sent.");
}

begin().catch(problem);
