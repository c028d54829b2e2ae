/** The page on which somebody takes part: everything happens here, on their device. */

import { assumptions, BrowserStore, budget, Client, InvitationUsed, NotGranted, setLimit, type Plan, type Store } from "../src/index.ts";
import { numberOf, readFile, type Choice, type Recording } from "../files/index.ts";
import { find, say, show } from "./dom.ts";
import { problemWords, tell, told as words, translate } from "./language.ts";
import { leaves, own, type Own } from "./leaving.ts";
import { hundred } from "./picture.ts";
import { granted, inShort, needed, promise, questions, stays, truly, verdict, what } from "./plain_words.ts";
import { fieldsOf, isCurve, namesOf, readCurve, readRow, readTyped, Unfit, usual, type Chosen, type Read, type Units } from "./reading.ts";

const home = find<HTMLElement>("take-part").dataset.collector || new URL("..", location.href).href.replace(/\/$/, "");
const told = new URLSearchParams(location.hash.slice(1));
const HASH = /^[0-9a-f]{64}$/;
const file = location.pathname.split("/").at(-1)!;
const hash = HASH.test(file) ? file : (told.get("study") ?? ""); // what can be seen in the path counts
const invitation = told.get("invitation") ?? undefined;
const somebodys = told.get("receipt"); // whoever has a receipt may see whether it was counted
const MANY_DAYS = 400; // in a list
const LONG = 2_000; // milliseconds of waiting, after which the page says why

let recording: Recording | null = null;
let read: Read | null = null;
let units: Units = { t: "", x: "" };
let seen: { recording: Recording; chosen: string; found: Read } | null = null; // a long file is not read with every key
let unsent = false; // for want of a network
let wrong: unknown = null; // with the file that was chosen last

async function begin(): Promise<void> {
  if (window.top !== window.self) throw new Unfit("problem.framed");
  if (!HASH.test(hash)) throw new Unfit("problem.link");
  const store = await BrowserStore.open();
  const person = new Client({ url: home, store });
  const slow = setTimeout(() => problem(new Unfit("problem.slow")), 2_000);
  const plan = await person.fetchPlan(hash).finally(() => clearTimeout(slow));
  say("problem", "");
  describe(plan);
  if (somebodys !== null) return check(person, somebodys);
  await describeBudget(store, plan);
  keepConsent();
  const letter = await store.change((state) => state.letters[hash]);
  if (letter?.withdrawn) return step("withdrawn", false);
  if (letter?.receipt) return finished(person, plan, letter.receipt, letter.body!, false);
  if (letter?.used) return guarded(async () => void (await person.send(hash))); // which says so
  if (letter?.body) return drawn(person, plan, letter.task, letter.body, true);
  if (await store.change((state) => Object.hasOwn(state.spent, hash))) {
    return problem(new Unfit("refused.here"));
  }
  const { limit: set } = await budget(store);
  const reason = set === null ? null : await person.refusal(hash, plan);
  if (reason) return problem(reason);
  const study = await person.told(hash);
  units = study.units;
  if (study.finished) return problem(new Unfit("problem.over"));
  if (!study.open && !invitation && !letter) return problem(new Unfit("problem.invited"));
  if (isCurve(plan)) say("needed", needed(plan, units));
  show("yours");
  offerFields(plan);
  find<HTMLInputElement>("file").addEventListener("change", () => void opened(plan));
  find("form").addEventListener("input", (event) => {
    checked(plan);
    if (read && (event.target as Element).matches("#columns select")) {
      offerDays(read);
      checked(plan);
    }
  });
  find("form").addEventListener("submit", (event) => {
    event.preventDefault();
    void guarded(() => answered(store, person, plan));
  });
  checked(plan);
}

/** What a receipt is worth, to whoever opens the link in it. */
async function check(person: Client, receipt: string): Promise<void> {
  keepConsent();
  const counted = await person.counted(hash, receipt).catch((error: unknown) => {
    throw error instanceof NotGranted && [400, 404].includes(error.status) ? new Unfit("problem.receipt") : error;
  });
  say("checked-receipt", receipt);
  say("checked", tell(counted ? "page.checked" : "page.checked-not"));
  step("check");
}

function describe(plan: Plan): void {
  const title = plan.title || tell("page.untitled");
  document.title = tell("page.title", { title });
  say("title", title);
  describeInformation(plan);
  say("asked-for", inShort(plan));
  say("what", what(plan));
  say("needed", needed(plan));
  say("questions", questions(plan));
  say("stays", stays(plan));
  say("promise", promise(plan));
  const often = Math.round(100 * truly(plan));
  for (const [id, count] of [["if-yes", often], ["if-no", 100 - often]] as const) {
    hundred(find(id), count);
    say(`${id}-words`, tell(`page.${id}`, { count }));
  }
  say("verdict", verdict(plan));
  say("named", hash);
  if (plan.target_range) {
    show("labels", false);
    show("numbers");
    say("target-range", tell("page.number", { low: plan.target_range[0], high: plan.target_range[1] }));
  } else {
    const labels = find<HTMLSelectElement>("label");
    plan.classes.forEach((label, k) => labels.add(new Option(String(label), String(k))));
  }
  show("accept", plan.protects !== "both");
  say("accept-words", granted(plan));
}

/** What the organizer says of the study, in their own words: a part of the plan, whose hash was checked. */
function describeInformation(plan: Plan): void {
  const about = plan.information;
  const host = new URL(home).host;
  say("who", about?.institution ?? `${tell("page.who-runs", { host })} ${tell("page.consent-none")}`);
  say("purpose", about?.purpose ?? what(plan));
  say("goes", tell("page.goes-words", { host, people: plan.n_people }));
  for (const name of ["contact", "officer", "approval"] as const) {
    const entry = find(name);
    entry.textContent = about?.[name] ?? "";
    for (const one of [entry, entry.previousElementSibling!]) one.toggleAttribute("hidden", !about?.[name]);
  }
  say("risks", [about?.risks, tell("page.risks-usual")].filter(Boolean).join(" "));
  say("retention", about?.retention ?? tell("page.retention-unsaid"));
  say("results", about?.results ?? tell("page.results-unsaid"));
  say("consent-version", about ? tell("page.consent-version", { version: about.version }) : "");
}

/** All that could be read before "yes", as a text to keep. */
function keepConsent(): void {
  const lines = [...find("about").querySelectorAll("h2, dt:not([hidden]), dd:not([hidden]), figcaption, p:not(:has(a))")].map((one) =>
    one.tagName === "H2" ? `\n${one.textContent}\n` : one.tagName === "DT" ? `\n${one.textContent}:` : one.textContent!.trim());
  const text = [find("title").textContent, ...lines, "", home, hash].join("\n");
  const link = find<HTMLAnchorElement>("consent-keep");
  link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/plain;charset=utf-8" }));
  link.download = `information-${hash.slice(0, 8)}.txt`;
}

async function describeBudget(store: Store, plan: Plan): Promise<void> {
  const { limit, spent, studies } = await budget(store);
  const host = location.host;
  say("spent", studies ? tell("page.spent", { host, spent, studies, limit: limit ?? 0 }) : tell("page.spent-nothing", { host }));
  const field = find<HTMLInputElement>("limit");
  // A study that costs more must not propose a lifetime's limit: the person types one.
  field.value = String(limit ?? (plan.epsilon <= 5 ? 5 : ""));
  field.disabled = limit !== null;
  show("limit-set", limit !== null);
}

async function opened(plan: Plan): Promise<void> {
  recording = null;
  wrong = null;
  const file = find<HTMLInputElement>("file").files?.[0];
  if (file) {
    try {
      recording = await readFile(file);
    } catch (error) {
      wrong = error;
    }
  }
  const several = recording !== null && isCurve(plan) && namesOf(recording).length > 1;
  show("columns", several);
  if (recording) offerColumns(plan, recording);
  find<HTMLSelectElement>("day").replaceChildren();
  checked(plan);
  if (read) offerDays(read);
  checked(plan);
}

function offerColumns(plan: Plan, from: Recording): void {
  const { t, x } = usual(plan, from, units);
  const options = () => namesOf(from).map((name, k) => new Option(name, String(k)));
  const lists = x.map((place, c) => {
    const list = document.createElement("select");
    list.id = c ? `column-x${c + 1}` : "column-x";
    list.replaceChildren(...(place === null ? [new Option(tell("page.choose"), "")] : []), ...options());
    list.value = place === null ? "" : String(place);
    const label = document.createElement("label");
    label.htmlFor = list.id;
    label.textContent = x.length > 1 ? tell("page.value-of", { place: c + 1 }) : tell("page.value");
    return [label, list];
  });
  find("values").replaceChildren(...lists.flat());
  show("times", from.table !== null);
  const points = find<HTMLSelectElement>("column-t");
  points.replaceChildren(new Option(tell("page.even"), ""), ...options());
  points.value = t === null ? "" : String(t);
}

/** A row of few columns can be typed: nobody has a file of five answers. */
function offerFields(plan: Plan): void {
  const fields = fieldsOf(plan).map(({ name, low, high, categories }, k) => {
    const label = document.createElement("label");
    label.htmlFor = `cell-${k}`;
    const words = name ?? tell("page.cell", { place: k + 1 });
    label.textContent = low === null || categories.length ? words : tell("page.cell-range", { name: words, low, high: high! });
    const field = document.createElement(categories.length ? "select" : "input");
    field.id = label.htmlFor;
    field.dataset.name = words;
    if (field instanceof HTMLInputElement) field.inputMode = "decimal";
    else field.replaceChildren(new Option(tell("page.choose"), ""), ...categories.map((one, place) => new Option(String(one), String(place))));
    const both = document.createElement("div");
    both.append(label, field);
    return both;
  });
  find("cells-typed").replaceChildren(...fields);
  show("typed", fields.length > 0);
  show("file-kinds", isCurve(plan));
  if (fields.length > 0) say("file-words", tell("page.file-instead"));
}

/** What was typed into the fields of a row; null as long as one is empty. */
function typedRow(plan: Plan): Read | null {
  const fields = [...find("cells-typed").querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")];
  if (fields.length === 0 || fields.some(({ value }) => value.trim() === "")) return null;
  return readTyped(plan, fields.map(({ value }) => value), fields.map(({ dataset }) => dataset.name!));
}

/** The days of what was read, the one in use chosen. */
function offerDays({ days, averages }: Read): void {
  show("days", days.length > 1);
  const list = find<HTMLSelectElement>("day");
  const known = list.value;
  const shown = days.slice(-MANY_DAYS).reverse();
  const options = shown.map(({ day, points }) => new Option(tell("page.day-points", { day: { day }, points }), day));
  if (averages) options.push(new Option(tell("page.average", { days: days.length }), "average"));
  list.replaceChildren(...options);
  const fullest = shown.reduce((best, one) => (one.points > best.points ? one : best), shown[0] ?? { day: "", points: 0 }).day;
  list.value = options.some(({ value }) => value === known) && known !== "" ? known : fullest;
}

/** Whether all is there: said before anybody is asked for anything, with nothing sent or spent. */
function checked(plan: Plan): void {
  read = null;
  say("problem", "");
  try {
    if (wrong) throw wrong;
    read = recording ? readAgain(plan, recording) : typedRow(plan);
  } catch (error) {
    problem(error);
  }
  const about = read ? [...(recording ? [tell(recording.how.code, recording.how.parameters)] : []), ...read.said.map(words)] : [];
  say("read", about.join(" "));
  own("curve", "cells", read, units);
  const missing = [
    ...(read ? [] : [tell(fieldsOf(plan).length ? "page.needs-row" : "page.needs-file")]),
    ...(label(plan) === undefined ? [tell(plan.target_range ? "page.needs-number" : "page.needs-label")] : []),
    ...(limit() >= plan.epsilon ? [] : [tell("page.needs-limit", { epsilon: plan.epsilon })]),
    ...(plan.protects === "both" || find<HTMLInputElement>("accepted").checked ? [] : [tell("page.needs-granted")]),
    ...(find<HTMLInputElement>("agreed").checked ? [] : [tell("page.needs-consent")]),
  ];
  say("missing", [...farAway(plan), ...(missing.length ? [tell("page.needs", { needs: missing.join(", ") })] : [])].join(" "));
  find<HTMLButtonElement>("yes").disabled = missing.length > 0;
}

function readAgain(plan: Plan, from: Recording): Read {
  const how = chosen();
  const key = JSON.stringify(how);
  if (seen?.recording !== from || seen.chosen !== key) {
    seen = { recording: from, chosen: key, found: isCurve(plan) ? readCurve(plan, from, how, units) : readRow(plan, from.table) };
  }
  return seen.found;
}

function chosen(): Chosen {
  const place = (list: HTMLSelectElement) => (list.value === "" ? null : Number(list.value));
  const day = find<HTMLSelectElement>("day").value;
  const choice: Choice | null = day === "" ? null : day === "average" ? "average" : { day };
  return { t: place(find("column-t")), x: [...find("values").querySelectorAll("select")].map(place), day: choice };
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
  return value < low || value > high ? [tell("page.number-far", { low, high })] : [];
}

async function answered(store: Store, person: Client, plan: Plan): Promise<void> {
  const mine = { read: read!, label: label(plan), units };
  say("creating", tell("page.creating"));
  const long = setTimeout(() => say("creating", tell("page.turn")), LONG);
  await created(store, person, plan, mine).finally(() => {
    clearTimeout(long);
    say("creating", "");
  });
}

async function created(store: Store, person: Client, plan: Plan, mine: Own): Promise<void> {
  await setLimit(store, limit());
  const accepts = find<HTMLInputElement>("accepted").checked ? assumptions(plan) : [];
  await person.join(hash, { mostEpsilon: plan.epsilon, accepts, ...(invitation ? { invitation } : {}) });
  const body = await person.prepare(hash, { curve: mine.read.curve, label: mine.label });
  await describeBudget(store, plan);
  const letter = await store.change((state) => state.letters[hash]!);
  drawn(person, plan, letter.task, body, false, mine);
}

function drawn(person: Client, plan: Plan, task: unknown, body: string, again: boolean, mine: Own | null = null): void {
  openOffline();
  step("leaves");
  leaves(plan, task, body, mine);
  say("again", again ? tell("page.again") : "");
  const send = () => guarded(async () => {
    say("waiting", tell("page.sending"));
    finished(person, plan, await person.send(hash), body, true);
  });
  find("send").addEventListener("click", () => void send());
  addEventListener("online", () => unsent && void send());
}

function finished(person: Client, plan: Plan, receipt: string, body: string, now: boolean): void {
  step("done", now);
  say("waiting", "");
  say("receipt", receipt);
  say("sent", body);
  const information = plan.information ? { information: plan.information.version } : {};
  const page = find<HTMLAnchorElement>("check-link");
  page.href = `${location.href.split("#")[0]}#${new URLSearchParams(file === hash ? { receipt } : { study: hash, receipt })}`;
  const kept = { study: hash, ...information, collector: home, receipt, check: page.href }; // to be shown: nothing of what was sent
  const link = find<HTMLAnchorElement>("keep");
  link.href = URL.createObjectURL(new Blob([`${JSON.stringify(kept, null, 1)}\n`], { type: "application/json" }));
  link.download = `receipt-${hash.slice(0, 8)}.json`;
  find("ask").addEventListener("click", () => void guarded(async () => {
    const counted = await person.counted(hash);
    say("counted", tell(counted ? "page.counted" : "page.not-counted"));
    show("withdrawal", !counted);
  }));
  find("withdraw").addEventListener("click", () => void guarded(async () => {
    say("counted", tell("page.withdrawing"));
    await person.withdraw(hash).catch(async (error: unknown) => {
      say("counted", "");
      throw error instanceof NotGranted && error.code === "late" ? new Unfit("refused.withdraw-late") : error;
    });
    step("withdrawn");
  }));
}

/** Whoever has a reply here can open the page without a network, too; nothing is kept before. */
function openOffline(): void {
  void navigator.serviceWorker?.register(new URL("worker.js", location.href)).catch(() => undefined);
}

/** One part of the page after another; whoever cannot see it is led there. */
function step(id: string, lead = true): void {
  for (const other of ["yours", "leaves", "done", "withdrawn", "check"]) show(other, other === id);
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
    say("waiting", "");
    unsent = !find("leaves").hasAttribute("hidden") && !navigator.onLine;
    if (unsent) say("waiting", tell("page.offline")); // which is no problem: nothing is lost
    else problem(error);
    if (error instanceof InvitationUsed) for (const part of ["yours", "leaves"]) show(part, false); // there is nothing left to do
  }
  buttons.forEach((button) => (button.disabled = false));
}

function problem(error: unknown): void {
  say("problem", problemWords(error));
  find("problem").scrollIntoView({ block: "nearest" });
}

// Another link on the same page is another study; a page that was left is looked at anew.
addEventListener("hashchange", () => location.reload());
addEventListener("pageshow", (event) => event.persisted && location.reload());

translate();
begin().catch(problem);
