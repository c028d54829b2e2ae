/** A person's device and a collector, both in a few lines. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { Client } from "../src/client.ts";
import { budget, setLimit } from "../src/ledger.ts";
import { Refused } from "../src/refusal.ts";
import { MemoryStore, type Store } from "../src/store.ts";

const folder = "../vectors";
export const vectors = (name: string): any => JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8"));
export const { plan: PLAN, hash: HASH } = vectors("plans")["three classes"];
export const TASK = vectors("refused").cases.find((one: any) => one.plan === "three classes").task;
export const URL = "https://collector.test";
export const GIVEN = { curve: { values: [1, 2, 3, 2, 1, 0, 1] }, label: 1 };

export type Answers = Partial<Record<"plan" | "enrol" | "task" | "reply" | "withdraw", (body?: string) => [number, unknown]>>;

/** A collector in a few lines, which says what it is told to; what it saw is kept. */
export function collector(answers: Answers = {}) {
  const seen: { path: string; method: string; token: string | null; body?: string }[] = [];
  const said: Required<Answers> = {
    plan: () => [200, { plan: PLAN }],
    enrol: () => [201, { token: `token${seen.length}` }],
    task: () => [200, { plan: HASH, phase: 0, ticket: 3, task: TASK }],
    reply: () => [200, { receipt: "0-3-abc" }],
    withdraw: () => [200, { withdrawn: true }],
    ...answers,
  };
  const fetch = async (url: string, how: RequestInit): Promise<Response> => {
    const path = url.slice(`${URL}/api/studies/`.length);
    const body = how.body as string | undefined;
    const token = (how.headers as Record<string, string>).Authorization ?? null;
    seen.push({ path, method: how.method!, token, ...(body === undefined ? {} : { body }) });
    assert.equal(how.credentials, "omit");
    assert.equal(how.redirect, "error");
    const kind = (path.split("/")[1] ?? "plan") as keyof Answers;
    const [status, document] = said[kind](body);
    if (status === 0) throw new TypeError("connection lost");
    return new Response(typeof document === "string" ? document : JSON.stringify(document), { status });
  };
  return { fetch, seen };
}

export async function device(answers: Answers = {}, store: Store = new MemoryStore(), limit = 5) {
  const { fetch, seen } = collector(answers);
  await setLimit(store, limit);
  const client = new Client({ url: URL, store, fetch, sleep: async () => undefined, patience: 1000 });
  return { client, seen, store };
}

export const refuses = (why: Refused["why"]) => (error: unknown) => error instanceof Refused && error.why === why;
export const spentBy = async (store: Store) => (await budget(store)).spent;
