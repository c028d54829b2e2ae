/** A collector that answers anything at all: words, nothing spent twice, the same bytes. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "../src/client.ts";
import { budget, setLimit } from "../src/ledger.ts";
import { Refused } from "../src/refusal.ts";
import { MemoryStore } from "../src/store.ts";
import { device, GIVEN, HASH, PLAN, refuses, TASK, URL, vectors } from "./device.ts";

const ODD: unknown[] = [
  null, true, -1, 0, 2 ** 63, 1e308, "", "x", "\u001b[2J", "a\nb", "\ud800", "é".repeat(50), "t".repeat(1e5),
  [], [[]], {}, { name: "vector" }, { "": {} }, [null, null, null],
];
const RAW = ["", "\ufffe", "{", '{"plan": {}', "[".repeat(1e5), '{"a":'.repeat(1e4), "9".repeat(1e5), "null"];
const STATUSES = [200, 201, 202, 200, 201, 200, 301, 400, 404, 410, 429, 500, 599];

/** Numbers of one seed, so that a failure can be seen again (mulberry32). */
function lot(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Document = { [name: string]: any };

class Odd {
  sent: string[] = [];

  constructor(readonly plan: Document, readonly hash: string, readonly task: Document, readonly luck: () => number, public share: number) {}

  honest(kind: string): [number, any] {
    const found: Record<string, [number, any]> = {
      enrol: [201, { token: "t".repeat(43) }],
      task: [200, { plan: this.hash, phase: 0, ticket: 0, task: this.task }],
      reply: [200, { receipt: `0-0-${"0".repeat(32)}` }],
    };
    return structuredClone(found[kind] ?? [200, { plan: this.plan }]);
  }

  pick<T>(list: T[]): T {
    return list[Math.floor(this.luck() * list.length)]!;
  }

  /** One place of a document is something else, or gone. */
  changed(found: any): any {
    if (found === null || typeof found !== "object" || Object.keys(found).length === 0 || this.luck() < 0.15) return this.pick(ODD);
    const key = this.pick(Object.keys(found));
    if (this.luck() < 0.2) delete found[key];
    else found[key] = this.changed(found[key]);
    return found;
  }

  fetch = async (url: string, how: RequestInit): Promise<Response> => {
    const kind = url.split("/").at(-1)!;
    if (kind === "reply") this.sent.push(how.body as string);
    const [status, found] = this.honest(kind);
    if (this.luck() > this.share) return new Response(JSON.stringify(found), { status });
    if (this.luck() < 0.2) return new Response(this.pick(RAW), { status: this.pick(STATUSES) });
    return new Response(JSON.stringify(this.changed(found)), { status: this.pick([status, ...STATUSES]) });
  };
}

const plain = (words: string) => words !== "" && !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(words);

test("whatever a collector answers", async () => {
  const luck = lot(7);
  let done = 0;
  for (const name of ["moments", "mrma", "answers", "channels", "vectors", "vectors of numbers"]) {
    const { plan, hash } = vectors("plans")[name];
    const { task } = vectors("refused").cases.find((one: any) => one.plan === name);
    for (let number = 0; number < 12; number += 1) {
      const odd = new Odd(plan, hash, task, luck, 0.7);
      const store = new MemoryStore();
      await setLimit(store, 60);
      const client = new Client({ url: URL, store, fetch: odd.fetch, sleep: async () => undefined, patience: -1 });
      for (let attempt = 0; attempt < 6; attempt += 1, odd.share *= 0.6) {
        try {
          await client.join(hash, { mostEpsilon: 9 });
          await client.prepare(hash, GIVEN);
          await client.send(hash);
          done += 1;
          break;
        } catch (error) {
          assert(error instanceof Refused && plain(error.message), String(error));
        }
      }
      assert((await budget(store)).studies <= 1, "one question, one answer");
      assert(new Set(odd.sent).size <= 1, "and the same bytes of it");
    }
  }
  assert(done > 36, `${done} of 72`);
});

test("every odd value in every place", async () => {
  let said = 0;
  for (const value of ODD) {
    const changed = (document: any, ...path: string[]): any => {
      const copy = structuredClone(document);
      const inner = path.slice(0, -1).reduce((part, step) => part[step], copy);
      inner[path.at(-1)!] = value;
      return copy;
    };
    const message = { plan: HASH, phase: 0, ticket: 3, task: TASK };
    const places: [string, any][] = [
      ...["epsilon", "encoder", "classes", "design", "title"].map((name): [string, any] => ["plan", changed({ plan: PLAN }, "plan", name)]),
      ["plan", { plan: value }], ["enrol", { token: value }],
      ...["name", "epsilon", "people", "positive", "thresholds", "coordinates"].map((name): [string, any] => ["task", changed(message, "task", name)]),
      ...["plan", "phase", "ticket", "task"].map((name): [string, any] => ["task", changed(message, name)]),
      ["reply", { receipt: value }],
    ];
    for (const [kind, document] of places) {
      const { client, seen, store } = await device({ [kind]: () => [200, document] });
      try {
        await client.join(HASH, { mostEpsilon: 1 });
        await client.prepare(HASH, GIVEN);
        await client.send(HASH);
      } catch (error) {
        assert(error instanceof Refused && plain(error.message), String(error));
        said += 1;
        const drawn = (await budget(store)).studies;
        assert.equal(drawn, kind === "reply" ? 1 : 0, `${kind} ${JSON.stringify(value)}`);
        assert.equal(seen.some(({ path }) => path.endsWith("/reply")), kind === "reply");
      }
    }
  }
  assert(said > 250, String(said));
});

test("a stored plan that was changed is refused", async () => {
  const { client, store } = await device();
  await client.join(HASH, { mostEpsilon: 1 });
  await store.change((state) => void (state.letters[HASH]!.plan = { ...PLAN, epsilon: 50 }));
  await assert.rejects(client.prepare(HASH, GIVEN), refuses("plan"));
  assert.equal((await budget(store)).studies, 0);
});

test("token and reply go to the collector that was joined, and to no other", async () => {
  const { client, store } = await device();
  await client.join(HASH, { mostEpsilon: 1 });
  const asked: string[] = [];
  const fetch = async (url: string) => (asked.push(url), new Response("{}", { status: 200 }));
  const other = new Client({ url: "https://other.test", store, fetch, sleep: async () => undefined });
  await other.join(HASH, { mostEpsilon: 1 }); // known already: nothing is asked
  for (const step of [() => other.prepare(HASH, GIVEN), () => other.send(HASH), () => other.counted(HASH)]) {
    await assert.rejects(step(), (error) => refuses("terms")(error) && /joined at https:\/\/collector\.test/.test(String(error)));
  }
  assert.deepEqual(asked, []);
  assert.equal((await budget(store)).studies, 0);
});

test("a study that cannot be paid for takes nobody's place", async () => {
  const { client, seen } = await device({}, new MemoryStore(), 0.5);
  await assert.rejects(client.join(HASH, { mostEpsilon: 1 }), refuses("budget"));
  assert.deepEqual(seen.map(({ path }) => path.split("/")[1]), [undefined]);
});

test("whether it was counted is a yes, a no, or not known", async () => {
  const { client, seen } = await device({ receipts: () => [200, answer] } as any);
  let answer: any = { phase: 0, counted: true };
  await client.join(HASH, { mostEpsilon: 1 });
  await assert.rejects(client.counted(HASH), refuses("form"));
  await client.prepare(HASH, GIVEN);
  await client.send(HASH);
  for (const counted of [true, false]) {
    answer = { phase: 0, counted };
    assert.equal(await client.counted(HASH), counted);
  }
  assert.equal(seen.at(-1)!.token, null, "the receipt is all that is shown");
  for (answer of [{}, [], { counted: "yes" }, { counted: 1 }, null]) await assert.rejects(client.counted(HASH), refuses("collector"));
});

test("an answer has a size", async () => {
  const huge = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1 << 20).fill(32)) });
  const fetch = async () => new Response(huge, { status: 200 });
  const client = new Client({ url: URL, store: new MemoryStore(), fetch, sleep: async () => undefined });
  await assert.rejects(client.fetchPlan(HASH), refuses("plan"));
});

test("a document that is nested without end is no plan", async () => {
  const deep = `{"plan":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
  const { client } = await device({ plan: () => [200, deep] });
  await assert.rejects(client.join(HASH, { mostEpsilon: 1 }), refuses("plan"));
});

test("what a collector says is one line of plain text", async () => {
  const { client } = await device({ enrol: () => [403, { error: { message: "\u001b]0;owned\u0007\u202e\r\nroot#" } }] });
  await assert.rejects(client.join(HASH, { mostEpsilon: 1 }), (error) => error instanceof Refused && plain(error.message) && error.message.includes("owned"));
});

test("what is told beside the plan is shown as one line, and believed by nobody", async () => {
  const say = (more: object) => device({ plan: () => [200, { plan: PLAN, ...more }] });
  const usual = await say({ status: "open", open: true, domain_unit: "hours", value_unit: "bpm" });
  assert.deepEqual(await usual.client.told(HASH), { finished: false, open: true, units: { t: "hours", x: "bpm" } });
  const odd = await say({ status: "finished", open: "yes", domain_unit: "a\u0000b".repeat(50), value_unit: 7 });
  const { finished, open, units } = await odd.client.told(HASH);
  assert.deepEqual([finished, open, units.x], [true, false, ""]);
  assert(plain(units.t) && units.t.length === 40);
});
