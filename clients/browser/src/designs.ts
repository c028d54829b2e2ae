/** What a study may ask: every task of its design, and what is fixed of each. */

import { size } from "./basis.ts";
import type { Json } from "./canonical.ts";
import { readFields, TASKS } from "./fields.ts";
import type { Plan } from "./plan.ts";
import { Refused } from "./refusal.ts";
import { columns, looksAt, type Task } from "./tasks.ts";

/** Values from `from` on, below `to`. */
class Range {
  constructor(readonly from: number, readonly to: number) {}
}
/** One of several. */
class OneOf {
  constructor(readonly options: Wanted[]) {}
}
type Wanted = Json | Range | OneOf;
type Terms = Record<string, Wanted>;

const range = (to: number, from = 0) => new Range(from, to);
const oneOf = (...options: Wanted[]) => new OneOf(options);
const ANY_LENGTH = range(1e51);

/** k α_k²: the effective number of clean answers in one reply to k questions. */
function information(epsilon: number, k: number): number {
  const alpha = -Math.expm1(-epsilon) / (1 + (2 ** k - 1) * Math.exp(-epsilon));
  return k * alpha * alpha;
}

export function bestQuestions(epsilon: number, most: number): number {
  let best = 1;
  for (let k = 2; k <= most; k += 1) if (information(epsilon, k) > information(epsilon, best)) best = k;
  return best;
}

function scoresOf(plan: Plan): number {
  return plan.classes.length === 2 ? 1 : plan.classes.length;
}

function positives(plan: Plan): Wanted {
  return plan.classes.length === 2 ? 1 : range(plan.classes.length);
}

function half(plan: Plan): Terms {
  const k = plan.classes.length;
  return { positive: k === 2 ? range(2, 1) : range(k), positives: Math.floor(k / 2) };
}

function confidence(plan: Plan, dimension: number, f: number): Record<string, Terms> {
  if (!plan.design.temperature_share) return {};
  const k = bestQuestions(plan.epsilon, 4);
  const m = scoresOf(plan);
  return { confidence: { dimension, f, known: dimension + 1, clipped: true, m, k, damping: range(1e6 + 1) } };
}

/** Questions about single columns, and vectors of them. */
function aboutColumns(plan: Plan, d: number, f: number, ...statistics: string[]): Record<string, Terms> {
  const told = d + f;
  return {
    stump: { k: bestQuestions(plan.epsilon, d), coordinates: range(d), positive: 1, uses_label: false },
    summary: {
      classes: Math.max(plan.classes.length, 1),
      d: oneOf(d, told),
      f: oneOf(0, f),
      q: range(told + 1, 1),
      statistic: oneOf("products", ...statistics),
      clip: 3,
      c: oneOf(1, Math.max(plan.classes.length, 1)),
      w: range(told + 2, 1),
      s: oneOf(1, Math.max(scoresOf(plan), 1)),
      t: range(told + 2, 1),
      reach: ANY_LENGTH,
      limit: ANY_LENGTH,
    },
  };
}

function vectors(plan: Plan): Record<string, Terms> {
  const d = plan.design.n_features ?? size(plan.encoder.basis);
  const f = plan.design.spread_differs ? d : 0;
  return {
    ...aboutColumns(plan, d, f, "spread", "residual", ...(plan.classes.length === 2 ? [] : ["classes"])),
    evaluation: { dimension: d + f, f, clipped: true, m: scoresOf(plan) },
    ...confidence(plan, d + f, f),
  };
}

function vectorNumbers(plan: Plan): Record<string, Terms> {
  const d = 1 + (plan.design.n_features ?? size(plan.encoder.basis));
  return {
    ...aboutColumns(plan, d, 0, "spread", "cross"),
    evaluation: { dimension: d, clipped: true, m: 3 },
  };
}

function verdicts(plan: Plan, members: number, epsilon: number, each = 1): Record<string, Terms> {
  const line = { epsilon, dimension: size(plan.encoder.basis) };
  return {
    member: { ...line, m: each, member: range(members), ...half(plan) },
    evaluation: { ...line, m: scoresOf(plan) },
  };
}

function reports(plan: Plan): Record<string, Terms> {
  const { mechanism = "laplace", label_share = null } = plan.design;
  const dimension = size(plan.encoder.basis);
  return { vector: { dimension, mechanism_name: mechanism, label_share, protects: plan.protects, ...half(plan) } };
}

/** The label, and one question about each feature at most. */
function answers(plan: Plan): Record<string, Terms> {
  const d = plan.design.n_features ?? size(plan.encoder.basis);
  const folds = plan.design.spread_differs ? d : 0;
  const stump = { k: range(Math.min(d + 1, 30) + 1, 1), coordinates: range(d + folds), positive: positives(plan) };
  return {
    stump: { ...stump, uses_label: oneOf(false, true), ...(folds ? { f: oneOf(0, folds) } : {}) },
    evaluation: { dimension: d + folds, f: folds, clipped: true, m: 1 },
    ...confidence(plan, d + folds, folds),
  };
}

const DESIGNS: Record<string, (plan: Plan) => Record<string, Terms>> = {
  answers,
  vectors,
  vector_numbers: vectorNumbers,
  moments: (plan) => ({
    moment: {
      dimension: size(plan.encoder.basis),
      positive: positives(plan),
      mechanism_name: plan.design.mechanism ?? "piecewise",
    },
  }),
  noisy_labels: (plan) => ({
    vector: { dimension: size(plan.encoder.basis), positive: positives(plan), positives: 1, protects: "labels" },
  }),
  mrma: (plan) => {
    const { n_classifiers = 50, verdict_share = 1, classifiers_per_person = 1 } = plan.design;
    return { ...reports(plan), ...verdicts(plan, n_classifiers, plan.epsilon * verdict_share, classifiers_per_person) };
  },
  mrma_stream: (plan) => {
    const { member } = verdicts(plan, plan.design.n_classifiers ?? 50, plan.epsilon);
    return { ...reports(plan), member: member! };
  },
  exchange: (plan) => verdicts(plan, plan.design.intercepts.length, plan.epsilon),
};

/** Every task that people may be asked in this study, and what is fixed of each. */
export function asks(plan: Plan): Record<string, Terms> {
  const common: Terms = { epsilon: plan.epsilon, unit: plan.unit };
  return Object.fromEntries(Object.entries(DESIGNS[plan.design.name]!(plan)).map(([name, terms]) => [name, { ...common, ...terms }]));
}

/** A task that somebody sent, if this study may ask one person for it. */
export function readTask(plan: Plan, sent: any): Task {
  const allowed = asks(plan);
  const name = sent !== null && typeof sent === "object" && !Array.isArray(sent) ? sent.name : undefined;
  if (typeof name !== "string" || !Object.hasOwn(allowed, name)) throw new Refused("kind", "this study asks no such task");
  const rules = TASKS[name]!;
  const { fields, sizes } = readFields(rules, sent);
  if (name === "summary") checkSummary(fields, sizes);
  if (sizes.f && looksAt({ name, fields, sizes }) > 2 * sizes.f) {
    throw new Refused("form", "the task cannot be understood: folds");
  }
  const terms = allowed[name]!;
  for (const [field, rule] of Object.entries(rules)) {
    if (field === "people" || (rule.kind === "array" && !rule.integers && !(field in terms))) continue;
    const wanted = field in terms ? terms[field]! : rule.default;
    if (wanted === undefined || !agrees(fields[field], wanted)) throw new Refused("terms", `${field} of a ${name} task is another one here`);
  }
  for (const [field, length] of Object.entries(sizes)) {
    if (!(field in rules) && !agrees(length, terms[field] ?? 0)) {
      throw new Refused("terms", `a ${name} task of ${field} = ${length} is not asked here`);
    }
  }
  if (fields.people !== 1) throw new Refused("terms", "a person answers tasks for one person");
  const most = size(plan.encoder.basis) + +(plan.target_range !== null);
  if (columns({ name, fields, sizes }) > most) throw new Refused("terms", "the task asks about more features than there are");
  return { name, fields, sizes };
}

function checkSummary(fields: Record<string, any>, sizes: Record<string, number>): void {
  const q = sizes.q!;
  const residual = fields.statistic === "residual";
  const weights: number = { residual: q + 1, classes: q + 1, cross: q }[fields.statistic as string] ?? 1;
  const fitting = q > 0 && sizes.d! > 0 && [1, fields.classes].includes(sizes.c) && sizes.w === weights
    && sizes.t === (residual ? q + 1 : 1) && (residual ? [1, fields.classes] : [1]).includes(sizes.s);
  if (!fitting) throw new Refused("form", "the task cannot be understood: summary");
}

function agrees(given: any, wanted: Wanted): boolean {
  if (wanted instanceof OneOf) return wanted.options.some((option) => agrees(given, option));
  if (Array.isArray(given)) {
    if (Array.isArray(wanted)) return given.length === wanted.length && given.every((one, k) => agrees(one, wanted[k]!));
    return given.every((one) => agrees(one, wanted));
  }
  return wanted instanceof Range ? given >= wanted.from && given < wanted.to : given === wanted;
}
