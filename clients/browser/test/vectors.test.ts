/** Every vector that the Python package ships, replayed. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { canonical, hashOf } from "../src/canonical.ts";
import { capIndex, classIndex } from "../src/codewords.ts";
import { readTask } from "../src/designs.ts";
import { encode } from "../src/encoder.ts";
import { boxMechanism, questionResponse, randomizedResponse } from "../src/mechanisms.ts";
import { readPlan } from "../src/plan.ts";
import { Refused } from "../src/refusal.ts";
import { bestCap } from "../src/sizes.ts";
import { answer } from "../src/tasks.ts";
import { readFields, TASKS } from "../src/fields.ts";
import type { Source } from "../src/words.ts";

const folder = "../vectors";
const vectors = (name: string): any => JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8"));

class Replay implements Source {
  left: bigint[];

  constructor(words: string[]) {
    this.left = words.map((word) => BigInt(`0x${word}`));
  }

  words(count: number): bigint[] {
    assert(count <= this.left.length, "a vector holds fewer words than were drawn");
    return this.left.splice(0, count);
  }
}

test("numbers", () => {
  for (const { bits, text } of vectors("numbers")) {
    const value = Buffer.from(bits, "hex").readDoubleBE(0);
    assert.equal(canonical(value), text);
  }
});

test("plans", async () => {
  for (const { plan, hash } of Object.values<any>(vectors("plans"))) {
    assert.equal(await hashOf(plan), hash);
    assert.equal(readPlan(plan), plan);
  }
});

test("refused plans", async () => {
  const cases = vectors("refused_plans");
  assert(cases.length > 80);
  for (const { what, plan, hash } of cases) {
    assert.equal(await hashOf(plan), hash);
    assert.throws(() => readPlan(plan), (error) => error instanceof Refused && error.why === "plan", what);
  }
});

function report(mechanism: any, value: number[], source: Source): number[] {
  const { name, epsilon, codewords, dimension, classes, buckets } = mechanism;
  switch (name) {
    case "randomized_response":
      return [randomizedResponse(epsilon, value[0]!, source)];
    case "question_response":
      return questionResponse(epsilon, value, source);
    case "cap_index":
      return capIndex(value, source, { epsilon, codewords, cap: bestCap(codewords, dimension, epsilon) });
    case "class_index": {
      const choice = { epsilon, codewords, buckets, cap: bestCap(codewords, dimension, epsilon, buckets) };
      return classIndex(value[0]!, value.slice(1), source, classes, choice);
    }
    default:
      return boxMechanism(name, epsilon, value, source);
  }
}

test("mechanisms", () => {
  for (const { mechanism, draws } of vectors("mechanisms")) {
    for (const draw of draws) {
      const source = new Replay(draw.words);
      assert.deepEqual(report(mechanism, draw.value, source).map((x) => x + 0), draw.report, JSON.stringify(mechanism));
      assert.equal(source.left.length, 0);
    }
  }
});

test("tasks", () => {
  for (const { task, features, label, words, values } of vectors("tasks")) {
    const source = new Replay(words);
    const read = { name: task.name, ...readFields(TASKS[task.name]!, task) };
    assert.deepEqual(answer(read, told(features), label, source).map((x) => x + 0), values, task.name);
    assert.equal(source.left.length, 0);
  }
});

const told = (values: any[]): any[] => values.map((one) => (Array.isArray(one) ? told(one) : Number(one)));

const cell = (value: any): any => (["NaN", "Infinity"].includes(value) ? Number(value) : value);

test("encoder", () => {
  const { tolerance, cases } = vectors("encoder");
  for (const { encoder, curves } of cases) {
    for (const { points, values, features } of curves) {
      const found = encode(encoder, { points, values: encoder.table ? values.map(cell) : told(values) });
      assert.equal(found.length, features.length);
      found.forEach((x, k) => assert(Math.abs(x - features[k]) <= tolerance, `${encoder.basis.name} ${found} ${features}`));
    }
  }
});

function why(reason: string): string {
  if (reason.includes("no such task")) return "kind";
  return reason.includes("cannot be understood") ? "form" : "terms";
}

test("refusals", () => {
  const plans = vectors("plans");
  let count = 0;
  for (const { plan, task, others } of vectors("refused").cases) {
    assert.equal(readTask(plans[plan].plan, task).name, task.name);
    for (const other of others) {
      const sent = { ...task, ...other.set };
      for (const name of other.without ?? []) delete sent[name];
      const read = () => readTask(plans[plan].plan, sent);
      const said = `${plan}: ${task.name} ${other.what}: ${other.reason}`;
      if (other.reason === null) assert.equal(read().name, sent.name, said);
      else assert.throws(read, (error) => error instanceof Refused && error.why === why(other.reason), said);
      count += 1;
    }
  }
  assert(count > 1400);
});
