/** Spend, store, send, in that order; hostile collectors; tabs at the same time. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { hashOf } from "../src/canonical.ts";
import { Client, labelNumber } from "../src/client.ts";
import { checkStore } from "../src/contract.ts";
import { bestCapIndex, capIndex } from "../src/codewords.ts";
import { setLimit, spend } from "../src/ledger.ts";
import { Refused } from "../src/refusal.ts";
import { MemoryStore, type State, type Store } from "../src/store.ts";
import { collector, device, GIVEN, HASH, PLAN, refuses, spentBy, TASK, URL, vectors } from "./device.ts";

test("every reply has a nonce of its own, whatever the noise is drawn from", async () => {
  const drawn: string[] = [];
  for (let k = 0; k < 20; k++) {
    const { client } = await device();
    await client.join(HASH, { mostEpsilon: 1 });
    drawn.push(JSON.parse(await client.prepare(HASH, GIVEN)).nonce);
  }
  assert.equal(new Set(drawn).size, 20);
  assert(new Set(drawn.join("")).size === 16 && drawn.every((one) => one.length === 32));
});

test("a person takes part", async () => {
  const { client, seen, store } = await device();
  assert.equal((await client.join(HASH, { mostEpsilon: 1 })).epsilon, 1);
  assert.equal(await spentBy(store), 0);
  const body = await client.prepare(HASH, GIVEN);
  assert.equal(await spentBy(store), 1);
  assert(!seen.some((one) => one.path.endsWith("/reply")), "nothing is sent before it is said so");
  const message = JSON.parse(body);
  assert.deepEqual([message.plan, message.phase, message.ticket], [HASH, 0, 3]);
  assert.deepEqual(message.values.map(Math.abs), TASK.thresholds[0].map(() => 1));
  assert.match(message.nonce, /^[0-9a-f]{32}$/);
  assert.equal(await client.send(HASH), "0-3-abc");
  assert.equal(seen.at(-1)!.body, body);
  assert.match(seen.at(-1)!.token!, /^Bearer token/);
  assert.equal(await client.prepare(HASH, { ...GIVEN, label: 2.5 }), body, "never drawn again");
  assert.equal(await client.send(HASH), "0-3-abc");
  assert.equal(seen.filter((one) => one.path.endsWith("/reply")).length, 1);
});

test("a retry sends the same bytes", async () => {
  const answers: [number, unknown][] = [[0, ""], [503, {}], [429, {}], [200, { receipt: "0-3-x" }]];
  const { client, seen } = await device({ reply: () => answers.shift()! });
  await client.join(HASH, { mostEpsilon: 1 });
  const body = await client.prepare(HASH, GIVEN);
  assert.equal(await client.send(HASH), "0-3-x");
  const sent = seen.filter((one) => one.path.endsWith("/reply")).map((one) => one.body);
  assert.deepEqual(sent, [body, body, body, body]);
});

test("offline in the middle: later the same bytes", async () => {
  let online = false;
  const { client, seen } = await device({ reply: () => (online ? [200, { receipt: "0-3-y" }] : [0, ""]) });
  await client.join(HASH, { mostEpsilon: 1 });
  const body = await client.prepare(HASH, GIVEN);
  await assert.rejects(client.send(HASH), refuses("collector"));
  online = true;
  assert.equal(await client.send(HASH), "0-3-y");
  assert(seen.filter((one) => one.body !== undefined).every((one) => one.body === body));
});

test("another plan than the hash says is refused", async () => {
  for (const plan of [{ ...PLAN, epsilon: 0.5 }, { ...PLAN, title: "x" }, null, "plan", [], 3]) {
    const { client, seen } = await device({ plan: () => [200, { plan }] });
    await assert.rejects(client.join(HASH, { mostEpsilon: 9 }), refuses("plan"));
    assert.equal(seen.length, 1);
  }
});

test("a plan that costs more than the person wants, or assumes more", async () => {
  const { client } = await device();
  await assert.rejects(client.join(HASH, { mostEpsilon: 0.99 }), refuses("budget"));
  await assert.rejects(client.join(HASH, { mostEpsilon: NaN }), refuses("budget"));
  const { plan, hash } = vectors("plans").labels;
  const other = await device({ plan: () => [200, { plan }] });
  await assert.rejects(other.client.join(hash, { mostEpsilon: 9 }), refuses("terms"));
  await other.client.join(hash, { mostEpsilon: 9, accepts: ["curves are public"] });
});

test("messages of a hostile collector spend nothing", async () => {
  const message = { plan: HASH, phase: 0, ticket: 3, task: TASK };
  const hostile: unknown[] = [
    { ...message, plan: "0".repeat(64) }, { ...message, more: 1 }, { ...message, ticket: "3" },
    { ...message, phase: -1 }, { ...message, task: { ...TASK, epsilon: 50 } }, { ...message, task: null },
    { ...message, task: [TASK] }, { ...message, task: { ...TASK, name: "__proto__" } },
    { ...message, task: { ...TASK, name: "toString" } }, "not json", null, [], 7,
    { ...message, task: { ...TASK, people: 2 } }, { plan: HASH, phase: 0, ticket: 3 },
  ];
  for (const document of hostile) {
    const { client, seen, store } = await device({ task: () => [200, document] });
    await client.join(HASH, { mostEpsilon: 1 });
    await assert.rejects(client.prepare(HASH, GIVEN), (error) => error instanceof Refused, JSON.stringify(document));
    assert.equal(await spentBy(store), 0);
    assert(!seen.some((one) => one.path.endsWith("/reply")));
  }
});

test("tokens and receipts are words", async () => {
  for (const token of ["", "two words", "a\nb", 7, null, "x".repeat(201)]) {
    const { client } = await device({ enrol: () => [201, { token }] });
    await assert.rejects(client.join(HASH, { mostEpsilon: 1 }), refuses("collector"));
  }
});

test("a token that lapsed is asked for again, if nothing was drawn", async () => {
  let first = true;
  const task = (): [number, unknown] => {
    if (!first) return [200, { plan: HASH, phase: 0, ticket: 9, task: TASK }];
    first = false;
    return [410, { error: { code: "lapsed", message: "join again" } }];
  };
  const { client, seen } = await device({ task });
  await client.join(HASH, { mostEpsilon: 1 });
  assert.equal(JSON.parse(await client.prepare(HASH, GIVEN)).ticket, 9);
  assert.equal(seen.filter((one) => one.path.endsWith("/enrol")).length, 2);
});

test("a study that wants nobody is asked again, for a while", async () => {
  const { client, store } = await device({ task: () => [202, { error: { code: "wait" } }] });
  await client.join(HASH, { mostEpsilon: 1 });
  await assert.rejects(client.prepare(HASH, GIVEN), refuses("collector"));
  assert.equal(await spentBy(store), 0);
});

test("the limit holds over all studies, to the last digit", async () => {
  const store = new MemoryStore();
  await assert.rejects(spend(store, "a", 0.1), refuses("budget"));
  await setLimit(store, 0.3);
  for (const study of ["a", "b", "c"]) await spend(store, study, 0.1);
  assert.equal(await spentBy(store), 0.3);
  await assert.rejects(spend(store, "d", 1e-6), refuses("budget"));
  await assert.rejects(spend(store, "a", 0.1), refuses("budget"));
  await assert.rejects(setLimit(store, 10), refuses("budget"));
  await setLimit(store, 0.3);
  for (const wrong of [0, -1, NaN, Infinity]) await assert.rejects(setLimit(new MemoryStore(), wrong), refuses("budget"));
});

test("a second answer to one study is refused, whatever is left", async () => {
  const { client, store } = await device();
  await client.join(HASH, { mostEpsilon: 1 });
  await spend(store, HASH, 1); // the device stopped between spending and storing
  await assert.rejects(client.prepare(HASH, GIVEN), refuses("budget"));
  await assert.rejects(client.send(HASH), refuses("form"));
  assert.equal(await spentBy(store), 1);
});

test("two tabs at once answer once, with the same bytes", async () => {
  const store = new MemoryStore();
  const tabs = await Promise.all([0, 1].map(() => device({}, store)));
  await Promise.all(tabs.map(({ client }) => client.join(HASH, { mostEpsilon: 1 })));
  const [one, other] = await Promise.all(tabs.map(({ client }) => client.prepare(HASH, GIVEN)));
  assert.equal(one, other);
  assert.equal(await spentBy(store), 1);
  await Promise.all(tabs.map(({ client }) => client.send(HASH)));
  assert.equal(tabs.flatMap(({ seen }) => seen).filter((x) => x.path.endsWith("/reply")).length, 1);
  assert.equal(tabs.flatMap(({ seen }) => seen).filter((x) => x.path.endsWith("/enrol")).length, 1);
});

test("ε is on the disk before anything is drawn, and bytes before anything is sent", async () => {
  const inner = new MemoryStore();
  const order: string[] = [];
  const store: Store = {
    alone: (key, work) => inner.alone(key, work),
    change<T>(work: (state: State) => T): Promise<T> {
      return inner.change((state) => {
        const before = JSON.stringify(state);
        const found = work(state);
        if (JSON.stringify(state.spent) !== JSON.stringify(JSON.parse(before).spent)) order.push("spent");
        if (state.letters[HASH]?.body !== JSON.parse(before).letters[HASH]?.body) order.push("stored");
        return found;
      });
    },
  };
  const source = { words: (count: number) => (order.push("drawn"), Array.from({ length: count }, () => 5n)) };
  const { fetch } = collector({ reply: () => (order.push("sent"), [200, { receipt: "r" }]) });
  await setLimit(store, 5);
  const client = new Client({ url: URL, store, source, fetch, sleep: async () => undefined });
  await client.join(HASH, { mostEpsilon: 1 });
  await client.prepare(HASH, GIVEN);
  await client.send(HASH);
  assert.deepEqual([...new Set(order)], ["spent", "drawn", "stored", "sent"]);
});

test("only encrypted connections, but for this machine", () => {
  const store = new MemoryStore();
  for (const url of ["http://collector.test", "ftp://x", "http://127.0.0.1.collector.test"]) {
    assert.throws(() => new Client({ url, store }), refuses("collector"));
  }
  for (const url of ["https://x", "http://localhost:8000/", "http://127.0.0.1:1"]) new Client({ url, store });
});

test("another name for a study", async () => {
  const { client } = await device();
  await assert.rejects(async () => client.fetchPlan("../etc"), refuses("form"));
});

test("stores keep a device's state, and one that does not is found out", async () => {
  const kept = new MemoryStore();
  await checkStore(async () => kept);
  const broken: [RegExp, (store: Store) => Store][] = [
    [/opens the store again/, () => new MemoryStore()],
    [/changes nothing/, (store) => ({ alone: store.alone.bind(store), change: (work) => store.change((state) => {
      try { return [work(state)] as const; } catch (error) { return error; }
    }).then((found: any) => { if (Array.isArray(found)) return found[0]; throw found; }) })],
    [/lose each other/, (store) => ({ alone: store.alone.bind(store), change: async (work) => {
      const state = await store.change((one) => structuredClone(one));
      const found = work(state);
      await new Promise((resolve) => setTimeout(resolve, 1));
      return store.change((one) => (Object.assign(one, state), found));
    } })],
    [/at the same time/, (store) => ({ change: store.change.bind(store), alone: (_, work) => work() })],
    [/different keys/, (store) => ({ change: store.change.bind(store), alone: (_, work) => {
      const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error("different keys")), 200));
      return Promise.race([late, store.alone("every key", work)]);
    } })],
  ];
  for (const [rule, spoil] of broken) {
    const shared = new MemoryStore();
    await assert.rejects(checkStore(async () => spoil(shared)), rule);
  }
});

test("a reply is withdrawn with a secret that was never sent before", async () => {
  const { client, seen, store } = await device();
  await client.join(HASH, { mostEpsilon: 1 });
  await assert.rejects(client.withdraw(HASH), refuses("form"));
  const body = await client.prepare(HASH, GIVEN);
  await client.send(HASH);
  const { secret } = await store.change((state) => state.letters[HASH]!);
  assert.match(secret!, /^[0-9a-f]{64}$/);
  assert.equal(JSON.parse(body).nonce, createHash("sha256").update(Buffer.from(secret!, "hex")).digest("hex").slice(0, 32));
  assert(!JSON.stringify(seen).includes(secret!), "it stays on the device");
  await client.withdraw(HASH);
  assert.deepEqual(JSON.parse(seen.at(-1)!.body!), { reply: body, secret });
  assert.equal(seen.at(-1)!.token, seen.at(-2)!.token);
  const before = seen.length;
  await client.withdraw(HASH);
  await assert.rejects(client.send(HASH), refuses("terms"));
  assert.equal(await client.prepare(HASH, GIVEN), body, "never drawn again");
  assert.equal(seen.length, before);
  assert.equal(await spentBy(store), 1, "the collector has seen the reply");
});

test("what was not sent is withdrawn without a word, and what was refused stays", async () => {
  const unsent = await device();
  await unsent.client.join(HASH, { mostEpsilon: 1 });
  await unsent.client.prepare(HASH, GIVEN);
  const before = unsent.seen.length;
  await unsent.client.withdraw(HASH);
  await assert.rejects(unsent.client.send(HASH), refuses("terms"));
  assert.equal(unsent.seen.length, before);
  const answers: [number, unknown][] = [[410, { error: { code: "late", message: "over" } }], [200, {}], [200, { withdrawn: true }]];
  const { client } = await device({ withdraw: () => answers.shift()! });
  await client.join(HASH, { mostEpsilon: 1 });
  await client.prepare(HASH, GIVEN);
  await client.send(HASH);
  for (let k = 0; k < 2; k++) {
    await assert.rejects(client.withdraw(HASH), refuses("collector"));
    assert.equal(await client.send(HASH), "0-3-abc", "it still counts");
  }
  await client.withdraw(HASH);
  assert.equal(answers.length, 0);
});

test("what cannot be encoded is answered all the same", async () => {
  for (const curve of [{ values: [] }, { values: ["x"] }, { values: null }, {}, { values: [1], points: [1, 2] }]) {
    const { client } = await device();
    await client.join(HASH, { mostEpsilon: 1 });
    const { values } = JSON.parse(await client.prepare(HASH, { curve: curve as any, label: undefined }));
    assert.deepEqual(values.map(Math.abs), TASK.thresholds[0].map(() => 1));
  }
});

test("labels are found among the plan's, as equal numbers too", async () => {
  assert.deepEqual([0, 1, 2.5, "1", null, "x"].map((label) => labelNumber(PLAN, label)), [0, 1, 2, 0, 0, 0]);
  assert.equal(labelNumber({ ...PLAN, classes: [true, 0] }, null), 0);
  assert.equal(labelNumber({ ...PLAN, classes: [false, true] }, 1), 1);
  assert.equal(await hashOf(PLAN), HASH);
});

test("an invitation that was used elsewhere draws, spends and sends nothing", async () => {
  const { client, seen, store } = await device({ task: () => [409, { error: { code: "answered", message: "used" } }] });
  await client.join(HASH, { mostEpsilon: 1, invitation: "first" });
  await assert.rejects(client.prepare(HASH, GIVEN), refuses("used"));
  assert.equal(await spentBy(store), 0);
  assert(!seen.some((one) => one.method === "POST"));
  await assert.rejects(client.send(HASH), refuses("form"), "nothing was drawn");
});

test("an invitation that was used after the draw: the reply stays here", async () => {
  let used = false;
  const task = (): [number, unknown] =>
    used ? [409, { error: { code: "answered" } }] : [200, { plan: HASH, phase: 0, ticket: 3, task: TASK }];
  const { client, seen } = await device({ task });
  await client.join(HASH, { mostEpsilon: 1, invitation: "first" });
  await client.prepare(HASH, GIVEN);
  used = true;
  for (let k = 0; k < 2; k++) await assert.rejects(client.send(HASH), refuses("used"));
  assert(!seen.some((one) => one.path.endsWith("/reply")), "no second reply of one person leaves");
});

test("who lost the receipt sends the same bytes, though the study has them", async () => {
  const answers: [number, unknown][] = [[0, ""], [200, { receipt: "r" }]];
  let asked = 0;
  const task = (): [number, unknown] =>
    asked++ ? [409, { error: { code: "answered" } }] : [200, { plan: HASH, phase: 0, ticket: 3, task: TASK }];
  const { client, store } = await device({ task, reply: () => answers.shift()! });
  await client.join(HASH, { mostEpsilon: 1, invitation: "first" });
  await client.prepare(HASH, GIVEN);
  await store.change((state) => void (state.letters[HASH]!.tried = true)); // and the device stopped
  assert.equal(await client.send(HASH), "r");
});

test("two devices that send at the same moment: the second is told so", async () => {
  const { client, store } = await device({ reply: () => [409, { error: { code: "answered" } }] });
  await client.join(HASH, { mostEpsilon: 1, invitation: "first" });
  await client.prepare(HASH, GIVEN);
  await assert.rejects(client.send(HASH), refuses("used"));
  assert(await store.change((state) => state.letters[HASH]!.used));
});

test("an invitation replaces another one until a reply is drawn", async () => {
  const { client, seen } = await device();
  await client.join(HASH, { mostEpsilon: 1, invitation: "first" });
  await client.join(HASH, { mostEpsilon: 1, invitation: "second" });
  await client.prepare(HASH, GIVEN);
  await client.join(HASH, { mostEpsilon: 1, invitation: "third" });
  await client.send(HASH);
  assert.equal(seen.at(-1)!.token, "Bearer second");
});

test("a stored study that was changed is checked again before anything is spent", async () => {
  const { plan, hash } = vectors("plans").labels;
  const message = { plan: hash, phase: 0, ticket: 0, task: vectors("refused").cases.find((one: any) => one.plan === "labels").task };
  const { client, store } = await device({ plan: () => [200, { plan }], task: () => [200, message] }, new MemoryStore(), 99);
  await client.join(hash, { mostEpsilon: 99, accepts: ["curves are public"] });
  await store.change((state) => void (state.letters[hash]!.accepts = []));
  await assert.rejects(client.prepare(hash, GIVEN), refuses("terms"));
  assert.equal(await spentBy(store), 0);
  await store.change((state) => void (state.letters[hash]!.accepts = ["curves are public"]));
  await client.prepare(hash, GIVEN); // what was agreed to is answered
});

test("numbers that are none count as 0 in a report of a vector", () => {
  const choice = bestCapIndex(2, 4);
  const words = () => ({ words: (count: number) => Array.from({ length: count }, (_, k) => BigInt(k + 1) * 0x9e3779b97f4a7c15n & ((1n << 64n) - 1n)) });
  for (const odd of [NaN, Infinity, -Infinity]) {
    assert.deepEqual(capIndex([0.3, odd, -0.4, odd], words(), choice), capIndex([0.3, 0, -0.4, 0], words(), choice));
  }
});
