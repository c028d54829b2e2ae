/** The page on which somebody takes part: everything happens here, on their device. */

import { assumptions, BrowserStore, budget, Client, InvitationUsed, Refused, setLimit, type Plan, type Store } from "../src/index.ts";
import { numberOf, readTable, Unreadable, type Table } from "./csv.ts";
import { find, say, show } from "./dom.ts";
import { leaves, own, type Own } from "./leaving.ts";
import { hundred } from "./picture.ts";
import { needed, promise, stays, truly, verdict, what } from "./plain_words.ts";
import { isCurve, readCurve, readRow, usual, type Read } from "./reading.ts";

const home = find<HTMLElement>("take-part").dataset.collector || new URL("..", location.href).href.replace(/\/$/, "");
const told = new URLSearchParams(location.hash.slice(1));
const HASH = /^[0-9a-f]{64}$/;
const file = location.pathname.split("/").at(-1)!;
const hash = HASH.test(file) ? file : (told.get("study") ?? ""); // what can be seen in the path counts
const invitation = told.get("invitation") ?? undefined;
const MOST_BYTES = 8 << 20;

let table: Table | null = null;
let read: Read | null = null;
let seen: { table: Table; columns: string; found: Read } | null = null; // a long file is not read with every key
let unsent = false; // for want of a network
let wrong: unknown = null; // with the file that was chosen last

async function begin(): Promise<void> {
  if (window.top !== window.self) throw new Refused("form", "This page is not to be shown inside another one: open the link itself.");
  if (!HASH.test(hash)) throw new Refused("form", "This link names no study. Open the link that you were given, whole.");
  const store = await BrowserStore.open();
  const person = new Client({ url: home, store });
  const slow = setTimeout(() => problem("The collector does not answer. It is asked again for a while."), 2_000);
  const plan = await person.fetchPlan(hash).finally(() => clearTimeout(slow));
  say("problem", "");
  describe(plan);
  await describeBudget(store, plan);
  const letter = await store.change((state) => state.letters[hash]);
  if (letter?.receipt) return finished(person, letter.receipt, letter.body!, false);
  if (letter?.used) return guarded(async () => void (await person.send(hash))); // which says so
  if (letter?.body) return drawn(person, plan, letter.task, letter.body, true);
  if (await store.change((state) => Object.hasOwn(state.spent, hash))) {
    return problem("This browser has answered this study before: one answer is all it gets.");
  }
  const { limit: set } = await budget(store);
  const reason = set === null ? null : await person.refusal(hash, plan);
  if (reason) return problem(reason);
  const { finished: over, open, units } = await person.told(hash);
  if (over) return problem("This study is over: it takes no more replies.");
  if (!open && !invitation && !letter) return problem("This study is for people who were invited: open the link that holds your invitation.");
  if (isCurve(plan)) say("needed", needed(plan, units));
  show("yours");
  find<HTMLInputElement>("file").addEventListener("change", () => void opened(plan));
  find("form").addEventListener("input", () => checked(plan));
  find("form").addEventListener("submit", (event) => {
    event.preventDefault();
    void guarded(() => answered(store, person, plan));
  });
  checked(plan);
}

function describe(plan: Plan): void {
  document.title = `Take part: ${plan.title || "a study"}`;
  say("title", plan.title || "A study without a title");
  say("who", `Whoever runs ${new URL(home).host}, where your reply goes. ${plan.n_people} people are wanted.`);
  say("what", what(plan));
  say("needed", needed(plan));
  say("stays", stays(plan));
  say("promise", promise(plan));
  const often = Math.round(100 * truly(plan));
  for (const [id, count, words] of [["if-yes", often, "yes"], ["if-no", 100 - often, "no"]] as const) {
    hundred(find(id), count);
    say(`${id}-words`, `If your true answer is ${words}, it says yes ${count} times out of 100.`);
  }
  say("verdict", verdict(plan));
  say("named", hash);
  if (plan.target_range) {
    show("labels", false);
    show("numbers");
    say("target-range", `Your number, from ${plan.target_range[0]} to ${plan.target_range[1]}`);
  } else {
    const labels = find<HTMLSelectElement>("label");
    plan.classes.forEach((label, k) => labels.add(new Option(String(label), String(k))));
  }
  show("accept", plan.protects !== "both");
  say("accept-words", `I know that ${assumptions(plan)[0] ?? ""}`);
}

async function describeBudget(store: Store, plan: Plan): Promise<void> {
  const { limit, spent, studies } = await budget(store);
  const here = location.host;
  say("spent", studies
    ? `On ${here}, this browser has spent ε = ${spent} in ${studies} ${studies === 1 ? "study" : "studies"}, of at most ε = ${limit}.`
    : `On ${here}, this browser has spent nothing on studies yet.`);
  const field = find<HTMLInputElement>("limit");
  // A study that costs more must not propose a lifetime's limit: the person types one.
  field.value = String(limit ?? (plan.epsilon <= 5 ? 5 : ""));
  field.disabled = limit !== null;
  show("limit-set", limit !== null);
}

async function opened(plan: Plan): Promise<void> {
  table = null;
  wrong = null;
  const file = find<HTMLInputElement>("file").files?.[0];
  if (file) {
    try {
      if (file.size > MOST_BYTES) throw new Unreadable("The file is larger than 8 MB.");
      table = readTable(await file.text());
    } catch (error) {
      wrong = error;
    }
  }
  show("columns", table !== null && isCurve(plan) && table.names.length > 1);
  if (table) offerColumns(plan, table);
  checked(plan);
}

function offerColumns(plan: Plan, own: Table): void {
  const { t, x } = usual(plan, own);
  const options = () => own.names.map((name, k) => new Option(name, String(k)));
  const lists = x.map((place, c) => {
    const list = document.createElement("select");
    list.id = c ? `column-x${c + 1}` : "column-x";
    list.replaceChildren(...options());
    list.value = String(place);
    const label = document.createElement("label");
    label.htmlFor = list.id;
    label.textContent = x.length > 1 ? `Value ${c + 1}` : "Value";
    return [label, list];
  });
  find("values").replaceChildren(...lists.flat());
  const points = find<HTMLSelectElement>("column-t");
  points.replaceChildren(new Option("equal distances", ""), ...options());
  points.value = t === null ? "" : String(t);
}

/** Whether all is there: said before anybody is asked for anything, with nothing sent or spent. */
function checked(plan: Plan): void {
  read = null;
  say("problem", "");
  try {
    if (wrong) throw wrong;
    if (table) read = readAgain(plan, table);
  } catch (error) {
    problem(error);
  }
  say("read", read && table ? [table.said, ...read.said].join(" ") : "");
  own("curve", "cells", read);
  const missing = [
    ...(read ? [] : ["a file that can be read"]),
    ...(label(plan) === undefined ? [plan.target_range ? "your number" : "your label"] : []),
    ...(limit() >= plan.epsilon ? [] : [`a limit that this study fits into, ε = ${plan.epsilon}`]),
    ...(plan.protects === "both" || find<HTMLInputElement>("accepted").checked ? [] : ["that you know what is public"]),
  ];
  say("missing", [...farAway(plan), ...(missing.length ? [`Still needed: ${missing.join(", ")}.`] : [])].join(" "));
  find<HTMLButtonElement>("yes").disabled = missing.length > 0;
}

function readAgain(plan: Plan, own: Table): Read {
  const columns = JSON.stringify(chosen());
  if (seen?.table !== own || seen.columns !== columns) {
    seen = { table: own, columns, found: isCurve(plan) ? readCurve(plan, own, chosen()) : readRow(plan, own) };
  }
  return seen.found;
}

function chosen(): { t: number | null; x: number[] } {
  const t = find<HTMLSelectElement>("column-t").value;
  const lists = find("values").querySelectorAll("select");
  return { t: t === "" ? null : Number(t), x: [...lists].map((list) => Number(list.value)) };
}

const typed = (id: string): number => numberOf(find<HTMLInputElement>(id).value.trim(), true);
const limit = (): number => typed("limit");

/** What was chosen; undefined where nothing was, or what is no number. */
function label(plan: Plan): unknown {
  if (plan.target_range) {
    const value = typed("number");
    return Number.isNaN(value) ? undefined : value; // also outside the range: silence would tell
  }
  const place = find<HTMLSelectElement>("label").value;
  return place === "" ? undefined : plan.classes[Number(place)];
}

/** That a number outside the study's range counts as its end. */
function farAway(plan: Plan): string[] {
  const [low, high] = plan.target_range ?? [-Infinity, Infinity];
  const value = plan.target_range ? typed("number") : 0;
  return value < low || value > high ? [`Your number lies outside ${low}…${high}: the nearer end counts.`] : [];
}

async function answered(store: Store, person: Client, plan: Plan): Promise<void> {
  const mine = { read: read!, label: label(plan) };
  await setLimit(store, limit());
  const accepts = find<HTMLInputElement>("accepted").checked ? assumptions(plan) : [];
  await person.join(hash, { mostEpsilon: plan.epsilon, accepts, ...(invitation ? { invitation } : {}) });
  const body = await person.prepare(hash, { curve: mine.read.curve, label: mine.label });
  await describeBudget(store, plan);
  const letter = await store.change((state) => state.letters[hash]!);
  drawn(person, plan, letter.task, body, false, mine);
}

function drawn(person: Client, plan: Plan, task: unknown, body: string, again: boolean, mine: Own | null = null): void {
  step("leaves");
  leaves(plan, task, body, mine);
  say("again", again ? "This reply was drawn before and may not have arrived: the same bytes are sent again." : "");
  const send = () => guarded(async () => {
    say("waiting", "Sending …");
    finished(person, await person.send(hash), body, true);
  });
  find("send").addEventListener("click", () => void send());
  addEventListener("online", () => unsent && void send());
}

function finished(person: Client, receipt: string, body: string, now: boolean): void {
  step("done", now);
  say("waiting", "");
  say("receipt", receipt);
  say("sent", body);
  const kept = { study: hash, collector: home, receipt }; // to be shown: nothing of what was sent
  const link = find<HTMLAnchorElement>("keep");
  link.href = URL.createObjectURL(new Blob([`${JSON.stringify(kept, null, 1)}\n`], { type: "application/json" }));
  link.download = `receipt-${hash.slice(0, 8)}.json`;
  find("ask").addEventListener("click", () => void guarded(async () => {
    say("counted", (await person.counted(hash)) ? "Yes, it was counted." : "It has arrived, and will be counted when this part of the study ends.");
  }));
}

/** One part of the page after another; whoever cannot see it is led there. */
function step(id: string, lead = true): void {
  for (const other of ["yours", "leaves", "done"]) show(other, other === id);
  find<HTMLDetailsElement>("about").open = false; // it was read, and is a tap away
  if (lead) find<HTMLElement>(id).querySelector("h2")!.focus();
}

/** One step at a time; what goes wrong is said, and can be tried again. */
async function guarded(work: () => Promise<void>): Promise<void> {
  const buttons = document.querySelectorAll<HTMLButtonElement>("button");
  buttons.forEach((button) => (button.disabled = true));
  say("problem", "");
  say("waiting", "");
  unsent = false;
  try {
    await work();
  } catch (error) {
    problem(error);
    say("waiting", "");
    if (error instanceof InvitationUsed) for (const part of ["yours", "leaves"]) show(part, false); // there is nothing left to do
    unsent = !find("leaves").hasAttribute("hidden") && !navigator.onLine;
    if (unsent) {
      say("waiting", "You are offline. Your reply is kept in this browser and will be sent when you are online again, as it is.");
    }
  }
  buttons.forEach((button) => (button.disabled = false));
}

function problem(error: unknown): void {
  const known = error instanceof Refused || error instanceof Unreadable;
  const words = known ? error.message : typeof error === "string" ? error : "Something went wrong on this page; nothing was sent.";
  say("problem", words.charAt(0).toUpperCase() + words.slice(1));
  find("problem").scrollIntoView({ block: "nearest" });
}

// Another link on the same page is another study; a page that was left is looked at anew.
addEventListener("hashchange", () => location.reload());
addEventListener("pageshow", (event) => event.persisted && location.reload());

begin().catch(problem);
