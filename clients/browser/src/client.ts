/** One person's device: joins studies, answers one task of each, and never twice. */

import { size } from "./basis.ts";
import { hashOf, type Json } from "./canonical.ts";
import { readTask } from "./designs.ts";
import { encode, type Curve } from "./encoder.ts";
import { Collector, NotGranted, type Fetch } from "./http.ts";
import { refusal, spend } from "./ledger.ts";
import { readPlan, type Plan } from "./plan.ts";
import { printable, Refused } from "./refusal.ts";
import type { Letter, Store } from "./store.ts";
import { answer } from "./tasks.ts";
import { newSecret, nonceOf, secure, type Source } from "./words.ts";

export type Options = {
  url: string;
  store: Store;
  source?: Source;
  fetch?: Fetch;
  sleep?: (milliseconds: number) => Promise<void>;
  /** Milliseconds to wait until the collector wants somebody. */
  patience?: number;
};

const WORD = /^[!-~]{1,200}$/;
const ASSUMED = { both: [], features: ["labels are public"], labels: ["curves are public"] };

const NOT_COUNTED = "The reply that was drawn here does not count.";

/** What a plan takes for granted: a person accepts it, or does not take part. */
export function assumptions(plan: Plan): string[] {
  return ASSUMED[plan.protects];
}

/**
 * The order is what protects: the plan is checked against the hash the person was given, ε is spent
 * in the device's own store, the reply is drawn and its exact bytes are stored, and only then is
 * anything sent. A retry sends those bytes again. If the device stops between spending and storing,
 * the budget is spent and nothing was sent: the study is lost, privacy is not.
 */
export class Client {
  #collector: Collector;
  #store: Store;
  #source: Source;
  #patience: number;

  constructor({ url, store, source = secure, fetch, sleep, patience = 60_000 }: Options) {
    this.#collector = new Collector(url, fetch, sleep);
    this.#store = store;
    this.#source = source;
    this.#patience = patience;
  }

  /** The plan behind a hash, from a collector that need not be trusted. */
  async fetchPlan(hash: string): Promise<Plan> {
    const known = await this.#letter(hash);
    const found = known?.plan ?? (await this.#collector.ask("GET", path(hash))).document?.plan;
    const named = await hashOf(found as Json).catch(() => null); // nested without end, or no document at all
    if (named !== hash) throw new Refused("plan", "the collector's plan is not the one with this hash", "hash");
    return readPlan(found);
  }

  /** What the collector says of a study beside its plan: to be shown, for nobody has promised that it is true. */
  async told(hash: string): Promise<{ finished: boolean; open: boolean; units: { t: string; x: string } }> {
    await this.#letter(hash);
    const { document } = await this.#collector.ask("GET", path(hash));
    const unit = (name: string) => (typeof document?.[name] === "string" ? printable(document[name], 40) : "");
    return {
      finished: document?.status === "finished",
      open: document?.open === true,
      units: { t: unit("domain_unit"), x: unit("value_unit") },
    };
  }

  /** Why this device could not pay for a study; null where it can. */
  async refusal(hash: string, plan: Plan): Promise<Refused | null> {
    return this.#store.change((state) => refusal(state, hash, plan.epsilon));
  }

  /**
   * Agree to a plan and get a token for it; joining again changes nothing. Only an invitation can be
   * exchanged for another one, as long as no reply was drawn.
   */
  async join(hash: string, how: { mostEpsilon: number; accepts?: string[]; invitation?: string }): Promise<Plan> {
    const plan = await this.fetchPlan(hash);
    if (!(plan.epsilon <= how.mostEpsilon)) throw new Refused("budget", `the study costs ε = ${plan.epsilon}, above the ceiling`);
    return this.#alone(hash, async () => {
      const known = await this.#letter(hash);
      if (known && (known.body !== undefined || how.invitation === undefined || how.invitation === known.token)) return plan;
      const accepts = how.accepts ?? [];
      checkAccepted(plan, accepts);
      if (how.invitation !== undefined && !WORD.test(how.invitation)) throw new Refused("form", "an invitation is one word");
      const reason = await this.refusal(hash, plan); // before the collector gives one of its places away
      if (reason) throw reason;
      const token = how.invitation ?? (await this.#enrolled(hash));
      await this.#keep(hash, { url: this.#collector.url, plan: plan as unknown as Json, token, accepts, invited: how.invitation !== undefined });
      return plan;
    });
  }

  /** Get the task, spend, draw the reply and store it, without sending it: the exact bytes. */
  async prepare(hash: string, given: { curve: Curve; label: unknown }): Promise<string> {
    return this.#alone(hash, async () => {
      const letter = await this.#joined(hash);
      if (letter.body !== undefined) return letter.body;
      const plan = await this.fetchPlan(hash);
      const { message, token } = await this.#task(hash, letter);
      const task = readTask(plan, message.task);
      checkAccepted(plan, letter.accepts);
      await spend(this.#store, hash, task.fields.epsilon);
      const values = answer(task, features(plan, given.curve, given.label), labelNumber(plan, given.label), this.#source);
      const secret = newSecret();
      const nonce = await nonceOf(secret);
      const body = JSON.stringify({ plan: hash, phase: message.phase, ticket: message.ticket, values, nonce });
      await this.#keep(hash, { ...letter, token, task: message.task, body, secret });
      return body;
    });
  }

  /** Send the stored bytes until they are acknowledged; returns the receipt. */
  async send(hash: string): Promise<string> {
    return this.#alone(hash, async () => {
      const letter = await this.#joined(hash);
      if (letter.withdrawn) throw new Refused("terms", "the reply was withdrawn: it is never sent again", "withdrawn");
      if (letter.receipt !== undefined) return letter.receipt;
      if (letter.used) throw new InvitationUsed(NOT_COUNTED, "used-late");
      if (letter.body === undefined) throw new Refused("form", "nothing was prepared for this study");
      try {
        // Before the first bytes leave: somebody may have answered with this invitation meanwhile.
        if (letter.invited && !letter.tried) await this.#free(hash, letter.token);
        await this.#keep(hash, { ...letter, tried: true });
        const { document } = await this.#collector.ask("POST", `${path(hash)}/reply`, letter.token, letter.body);
        const receipt = word(document, "receipt");
        await this.#keep(hash, { ...letter, tried: true, receipt });
        return receipt;
      } catch (error) {
        if (!isAnswered(error)) throw error;
        await this.#keep(hash, { ...letter, used: true });
        throw new InvitationUsed(NOT_COUNTED, "used-late");
      }
    });
  }

  /**
   * Take the reply out of the study, as long as its phase takes replies: nothing is computed from
   * it. ε stays spent, for the collector has seen the reply. What was never sent never is.
   */
  async withdraw(hash: string): Promise<void> {
    return this.#alone(hash, async () => {
      const letter = await this.#joined(hash);
      if (letter.withdrawn) return;
      if (letter.body === undefined) throw new Refused("form", "nothing was prepared for this study");
      if (letter.tried) {
        if (letter.secret === undefined) throw new Refused("form", "this reply was drawn by a release that withdraws none");
        const wish = JSON.stringify({ reply: letter.body, secret: letter.secret });
        const { document } = await this.#collector.ask("POST", `${path(hash)}/withdraw`, letter.token, wish);
        if (document?.withdrawn !== true) throw new Refused("collector", "the collector does not say that the reply was removed");
      }
      await this.#keep(hash, { ...letter, withdrawn: true });
    });
  }

  /** Whether the study has counted this device's reply, or that of another receipt, which is all that is shown. */
  async counted(hash: string, receipt?: string): Promise<boolean> {
    receipt ??= (await this.#joined(hash)).receipt;
    if (receipt === undefined) throw new Refused("form", "there is no receipt of this study");
    const { document } = await this.#collector.ask("GET", `${path(hash)}/receipts/${encodeURIComponent(receipt)}`);
    if (typeof document?.counted !== "boolean") throw new Refused("collector", "the collector does not say whether the reply was counted");
    return document.counted;
  }

  async #task(hash: string, letter: Letter): Promise<{ message: any; token: string }> {
    try {
      return { message: await this.#asked(hash, letter.token), token: letter.token };
    } catch (error) {
      if (isAnswered(error)) throw new InvitationUsed("Nothing was drawn, spent or sent here.");
      if (!(error instanceof NotGranted) || error.code !== "lapsed") throw error;
      // Joined too long ago, and nothing was drawn or spent since: as somebody new.
      const token = await this.#enrolled(hash);
      await this.#keep(hash, { ...letter, token });
      return { message: await this.#asked(hash, token), token };
    }
  }

  /** Refuse, as the collector does, if the study has a reply to this token; whatever else it says is said again later. */
  async #free(hash: string, token: string): Promise<void> {
    try {
      await this.#collector.ask("GET", `${path(hash)}/task`, token);
    } catch (error) {
      if (isAnswered(error) || !(error instanceof NotGranted)) throw error;
    }
  }

  async #asked(hash: string, token: string): Promise<any> {
    for (let waited = 0; ; waited += 500) {
      const { status, document } = await this.#collector.ask("GET", `${path(hash)}/task`, token);
      if (status === 200) return checkedMessage(document, hash);
      if (waited >= this.#patience) throw new Refused("collector", "the study wants nobody now; try again later", "busy");
      await this.#collector.pause(500);
    }
  }

  async #enrolled(hash: string): Promise<string> {
    return word((await this.#collector.ask("POST", `${path(hash)}/enrol`)).document, "token");
  }

  /** Nobody else who has this device's state works on the study meanwhile. */
  #alone<T>(hash: string, work: () => Promise<T>): Promise<T> {
    return this.#store.alone(hash, work);
  }

  #letter(hash: string): Promise<Letter | undefined> {
    if (!/^[0-9a-f]{64}$/.test(hash)) throw new Refused("form", "a study is named by 64 hexadecimal digits");
    return this.#store.change((state) => state.letters[hash]);
  }

  async #joined(hash: string): Promise<Letter> {
    const letter = await this.#letter(hash);
    if (!letter) throw new Refused("form", "this device has not joined the study");
    // Its token and reply are for that collector, whoever else has a study of the same plan.
    if (letter.url !== this.#collector.url) throw new Refused("terms", `this study was joined at ${printable(letter.url)}`, "elsewhere", { place: printable(letter.url) });
    return letter;
  }

  #keep(hash: string, letter: Letter): Promise<void> {
    return this.#store.change((state) => void (state.letters[hash] = letter));
  }
}

/** The study has a reply to this person's invitation, from another browser or device. */
export class InvitationUsed extends Refused {
  constructor(here: string, code = "used") {
    super("used", `this invitation was used already: the study has a reply to it, from another browser or device. ${here}`, code);
  }
}

function isAnswered(error: unknown): boolean {
  return error instanceof NotGranted && error.code === "answered";
}

function path(hash: string): string {
  return `/api/studies/${hash.slice(0, 16)}`;
}

function word(document: any, name: string): string {
  const found = document?.[name];
  if (typeof found !== "string" || !WORD.test(found)) throw new Refused("collector", `the collector's answer holds no ${name}`);
  return found;
}

function checkAccepted(plan: Plan, accepts: string[]): void {
  for (const assumption of assumptions(plan)) {
    if (!accepts.includes(assumption)) throw new Refused("terms", `the study assumes that ${assumption}: this was not agreed to`);
  }
}

function checkedMessage(document: any, hash: string): any {
  const names = document !== null && typeof document === "object" ? Object.keys(document).sort().join() : "";
  const whole = [document?.phase, document?.ticket].every((x) => Number.isSafeInteger(x) && x >= 0);
  if (names !== "phase,plan,task,ticket" || !whole) throw new Refused("form", "the collector's message cannot be understood");
  if (document.plan !== hash) throw new Refused("terms", "the task belongs to another study");
  return document;
}

/** The place of a label among the plan's; 0 for whatever is none of them: refusing would tell. */
export function labelNumber(plan: Plan, label: unknown): number {
  if (plan.target_range !== null) return 0;
  // As in Python: true is 1, and text is never a number.
  const known = (one: unknown) => (typeof one === "boolean" ? Number(one) : one);
  return Math.max(0, plan.classes.findIndex((one) => known(one) === known(label)));
}

/** What tasks take: the encoded curve, after the target where a number is predicted. */
export function features(plan: Plan, curve: Curve, label: unknown): number[] {
  let encoded: number[];
  try {
    encoded = encode(plan.encoder, curve);
  } catch {
    encoded = new Array<number>(size(plan.encoder.basis)).fill(0); // whatever it was: refusing would tell
  }
  if (plan.target_range === null) return encoded;
  const [low, high] = plan.target_range;
  const middle = low / 2 + high / 2;
  const half = Math.max(high / 2 - low / 2, 2 ** -1022);
  const value = typeof label === "number" ? label : Number.NaN;
  const inside = Number.isNaN(value) ? middle : Math.min(Math.max(value, low), high);
  return [Math.min(Math.max((inside - middle) / half, -1), 1), ...encoded];
}
