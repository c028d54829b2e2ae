/** The public contract of a study, as far as a person's device must understand it. */

import { channels, domain, size, type Basis } from "./basis.ts";
import type { Encoder } from "./encoder.ts";
import { printable, Refused } from "./refusal.ts";

export type Plan = {
  epsilon: number;
  n_people: number;
  encoder: Encoder;
  classes: (string | number | boolean)[];
  design: { name: string } & Record<string, any>;
  protects: "both" | "features" | "labels";
  unit: string;
  seed: number;
  title: string;
  target_range: [number, number] | null;
  information?: Information;
};

/** What the organizer tells participants before they consent; it is part of the plan and of its hash. */
export type Information = Record<"version" | "institution" | "contact" | "purpose", string>
  & Partial<Record<"officer" | "approval" | "risks" | "retention" | "results", string>>;

type Rule = (given: any) => boolean;
type Rules = Record<string, Rule>;

const MOST_FEATURES = 1 << 16; // what a task may ask about

const finite: Rule = (x) => typeof x === "number" && Number.isFinite(x);
const above: Rule = (x) => finite(x) && x > 0;
const fraction: Rule = (x) => above(x) && x < 1;
const share: Rule = (x) => x === 0 || fraction(x);
const flag: Rule = (x) => typeof x === "boolean";
const whole = (least: number, most = Number.MAX_SAFE_INTEGER): Rule => (x) => Number.isSafeInteger(x) && x >= least && x <= most;
const text = (least: number, most: number): Rule => (x) =>
  typeof x === "string" && [...x].length >= least && [...x].length <= most && /^(?:[^\p{C}\p{Z}]| )*$/u.test(x);
const among = (...known: string[]): Rule => (x) => known.includes(x);
const maybe = (rule: Rule): Rule => (x) => x === null || rule(x);
const list = (rule: Rule, least = 1): Rule => (x) => Array.isArray(x) && x.length >= least && x.every(rule);
const interval: Rule = (x) => list(finite)(x) && x.length === 2 && x[0] < x[1];
const object: Rule = (x) => x !== null && typeof x === "object" && !Array.isArray(x);
const growing: Rule = (x) => x.every((one: number, k: number) => k === 0 || one > x[k - 1]);

/** Whether it has exactly these members; those of `more` may be left out. */
function made(given: any, of: Rules, more: Rules = {}): boolean {
  if (!object(given)) return false;
  const rules = { ...of, ...more };
  return Object.keys(of).every((name) => Object.hasOwn(given, name))
    && Object.keys(given).every((name) => Object.hasOwn(rules, name) && rules[name]!(given[name]));
}

const PLAN: Rules = {
  epsilon: above,
  n_people: whole(1, 1e9),
  encoder: object,
  classes: (x) => list((one) => flag(one) || finite(one) || text(0, 200)(one), 0)(x)
    && x.every((one: unknown) => !Number.isInteger(one) || Number.isSafeInteger(one)),
  design: (x) => object(x) && typeof x.name === "string",
  protects: among("both", "features", "labels"),
  unit: text(1, 100),
  seed: whole(0),
  title: text(0, 200),
  target_range: maybe(interval),
};

const paragraph = text(1, 2_000);
const INFORMATION: Rule = (x) => made(x,
  { version: paragraph, institution: paragraph, contact: paragraph, purpose: paragraph },
  { officer: paragraph, approval: paragraph, risks: paragraph, retention: paragraph, results: paragraph });

const waves = (most = MOST_FEATURES): Rules => ({ n_basis: whole(1, most), domain_range: interval });
const BASES: Record<string, Rules> = {
  cosine: waves(),
  fourier: waves(),
  smooth: waves(64),
  bspline: { ...waves(), order: whole(1, 100), knots: maybe(list(finite, 0)) },
  custom: { points: list(finite, 2), values: list(list(finite), 2) },
  identity: { n_basis: whole(1, MOST_FEATURES) },
  channels: { parts: list(object) },
};

function checkBasis(basis: any, alone = true): void {
  const { name, ...given } = basis;
  const known = typeof name === "string" && Object.hasOwn(BASES, name) && (alone || !["identity", "channels"].includes(name));
  if (!known || !made(given, BASES[name]!)) throw new Refused("plan", `curves on the basis ${printable(String(name), 40)} cannot be encoded here`);
  basis.parts?.forEach((part: any) => checkBasis(part, false));
  if (!fitting(basis as Basis) || size(basis) > MOST_FEATURES) throw new Refused("plan", "the plan's basis does not make sense");
}

function fitting(basis: Basis): boolean {
  const { points, values, order = 0, knots, parts, n_basis = 0 } = basis;
  if (parts) return parts.length <= 1024 && parts.every((part) => String(domain(part)) === String(domain(parts[0]!)));
  if (points) return growing(points) && values!.length === points.length && values!.every((row) => row.length === values![0]!.length);
  if (!order) return true;
  const [low, high] = basis.domain_range!;
  if (!knots) return n_basis >= order;
  return n_basis === order + knots.length && growing(knots) && knots.every((t) => t > low && t < high);
}

function checkEncoder(encoder: Encoder): void {
  if (!made(encoder, { basis: object, rescale: object }, { table: object })) throw new Refused("plan", "the plan's encoder cannot be understood");
  checkBasis(encoder.basis);
  const d = size(encoder.basis);
  const each = (rule: Rule): Rule => (x) => rule(x) || (list(rule)(x) && x.length === d);
  const { name, ...sizes } = encoder.rescale;
  const sound = name === "max_abs" ? made(sizes, {}) : among("clip", "tanh")(name) && made(sizes, { scale: each(above), center: each(finite) });
  const column: Rule = (x) => made(x, { key: () => true, low: finite, high: finite, categories: list(() => true, 0) }) && x.low < x.high;
  const numbers = (columns: any[]) => columns.reduce((sum, { categories }) => sum + (categories.length || 1), 0);
  const table = encoder.table === undefined
    || (made(encoder.table, { columns: list(column), named: flag }) && encoder.basis.name === "identity" && numbers(encoder.table.columns) === d);
  if (!sound || !table) throw new Refused("plan", "the plan's encoder does not make sense");
}

const KEPT: Rules = { evaluation_share: share, temperature_share: share };
const JUDGED: Rules = { cutoff: maybe((x) => finite(x) && x >= 0.5 && x < 1), strictness: (x) => finite(x) && x >= 0 };
const MECHANISM = among("laplace", "piecewise", "duchi", "hybrid");
const REPORTED: Rules = {
  ...JUDGED, n_classifiers: whole(1, 1e5), member_size: whole(2, 1e9), learner: (x) => typeof x === "string", learner_parameters: object,
  training_share: fraction, mechanism: MECHANISM, label_share: maybe(fraction), boundary_spread: maybe(above),
};

/** Parameters of each design that this client takes part in. */
const KNOWN: Rules = { ordered: maybe(flag), center_known: flag, n_features: maybe(whole(1)), evaluation_share: share };
const DESIGNS: Record<string, Rules> = {
  answers: { ...KEPT, ...KNOWN, class_share: maybe(fraction), spread_differs: flag },
  vectors: { ...KEPT, ...KNOWN, class_share: maybe(fraction), spread_differs: flag },
  vector_numbers: KNOWN,
  moments: { mechanism: MECHANISM },
  noisy_labels: { ridge: above },
  mrma: { ...REPORTED, verdict_share: (x) => x === 1 || fraction(x), classifiers_per_person: whole(1), evaluation_share: share },
  mrma_stream: { ...REPORTED, new_classifiers: whole(1), memory: fraction, alarm: above, carried: maybe(object), round: whole(0, 1e9) },
  exchange: { ...JUDGED, intercepts: list(finite), coefficients: list(list(finite)), halves: maybe(list(list(whole(0)))), evaluation_share: share },
};

function checkDesign(plan: Plan): void {
  const { name, ...given } = plan.design;
  if (!Object.hasOwn(DESIGNS, name)) throw new Refused("plan", `this client takes no part in studies of design ${printable(name, 40)}`);
  const d = size(plan.encoder.basis);
  const k = plan.classes.length;
  const kept = (given.evaluation_share ?? 0) + (given.temperature_share ?? given.training_share ?? 0);
  const sound = made(given, {}, DESIGNS[name]!)
    && (given.n_features ?? 1) <= d
    && kept < 1
    && (given.class_share == null || k === 2)
    && (name !== "noisy_labels" || plan.protects === "labels")
    && (name !== "answers" || k === 2)
    && (name !== "mrma" || (given.classifiers_per_person ?? 1) <= (given.n_classifiers ?? 50))
    && (name !== "mrma_stream" || (given.new_classifiers ?? 10) <= (given.n_classifiers ?? 50))
    && (name !== "exchange" || candidates(given, d, k))
    && (name === "vector_numbers") === (plan.target_range !== null);
  if (!sound) throw new Refused("plan", "the plan's design does not make sense");
}

function candidates({ intercepts, coefficients, halves = null }: Record<string, any>, d: number, k: number): boolean {
  const half = (labels: number[]) => labels.length === Math.floor(k / 2) && labels.every((one, place) => one < k && (place === 0 || one > labels[place - 1]!));
  return Array.isArray(intercepts) && coefficients?.length === intercepts.length && coefficients.every((row: number[]) => row.length === d)
    && (k === 2 ? halves === null : halves?.length === intercepts.length && halves.every(half));
}

/** A plan that this client can take part in; its hash was checked before. */
export function readPlan(found: any): Plan {
  if (!made(found, PLAN, { information: INFORMATION })) throw new Refused("plan", "this client cannot take part in such a study");
  const plan = found as Plan;
  // As in Python: true is 1, and text is never a number.
  const different = new Set(plan.classes.map((one) => (typeof one === "boolean" ? Number(one) : one))).size;
  const sound = plan.target_range === null ? different === plan.classes.length && different >= 2 : different === 0;
  if (!sound) throw new Refused("plan", "the plan's classes and target_range do not go together");
  checkEncoder(plan.encoder);
  checkDesign(plan);
  return plan;
}

/** How many channels a curve of this study has. */
export function channelsOf(plan: Plan): number {
  return channels(plan.encoder.basis).length;
}

/** Where its curves live. */
export function domainOf(plan: Plan): [number, number] {
  return domain(plan.encoder.basis);
}
