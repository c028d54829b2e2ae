/** Fields of tasks: declared once with type, shape and range, checked before anything is computed. */

import type { Json } from "./canonical.ts";
import { Refused } from "./refusal.ts";

const LARGEST = 1e100;
const WIDE = 1e50;
const LABELS = 1 << 20;

export type Rule = {
  kind: "number" | "whole" | "flag" | "choice" | "array";
  least?: number;
  most?: number;
  above?: number;
  optional?: boolean;
  options?: string[];
  shape?: string[];
  integers?: boolean;
  default?: Json;
};
export type Rules = Record<string, Rule>;
export type Fields = Record<string, any>;
export type Sizes = Record<string, number>;

const number = (limits: Partial<Rule>): Rule => ({ kind: "number", ...limits });
const whole = (least: number, most: number): Rule => ({ kind: "whole", least, most });
const real = (shape: string[], least = -LARGEST, most = LARGEST): Rule => ({ kind: "array", shape, least, most });
const integers = (shape: string[], most = LABELS): Rule => ({ kind: "array", shape, least: 0, most, integers: true });

const COMMON: Rules = {
  unit: { kind: "choice", default: "person" },
  epsilon: number({ least: 1e-6, most: 1e6 }),
  people: whole(0, 2 ** 31),
};
const FOLDS: Rules = { folds: { ...real(["f"], -1, 1), default: [] } };
const LINE: Rules = {
  ...FOLDS,
  clipped: { kind: "flag", default: false },
  intercept: real(["people", "m"]),
  coefficients: real(["people", "m", "dimension"]),
  centers: real(["people", "m", "dimension"]),
  scales: real(["people", "m", "dimension"], 1e-50),
};
const BOXES = ["laplace", "piecewise", "duchi", "hybrid"];
const ALONE = { default: [1] };

/** What each field of each task may be; arrays last, for other fields may give their lengths. */
export const TASKS: Record<string, Rules> = {
  stump: {
    ...COMMON,
    ...FOLDS,
    uses_label: { kind: "flag", default: true },
    coordinates: integers(["people", "k"]),
    thresholds: real(["people", "k"]),
    positive: integers(["people"]),
  },
  confidence: {
    ...COMMON,
    ...LINE,
    damping: number({ least: 1e-6, most: 1e6 }),
    variances: real(["people", "m", "known"], 0),
    dithers: real(["people", "k"], -1, 1),
  },
  evaluation: { ...COMMON, ...LINE },
  member: { ...COMMON, ...LINE, member: integers(["people", "m"], 2 ** 53), positive: integers(["people", "m", "positives"]) },
  moment: {
    ...COMMON,
    dimension: whole(1, 1 << 16),
    mechanism_name: { kind: "choice", options: BOXES, default: "piecewise" },
    positive: integers(["people"]),
  },
  vector: {
    ...COMMON,
    dimension: whole(1, 1 << 16),
    mechanism_name: { kind: "choice", options: BOXES, default: "laplace" },
    label_share: number({ above: 0, most: 1 - 1e-9, optional: true, default: null }),
    protects: { kind: "choice", options: ["both", "features", "labels"], default: "both" },
    positive: { ...integers(["positives"]), ...ALONE },
  },
  summary: {
    ...COMMON,
    ...FOLDS,
    statistic: { kind: "choice", options: ["spread", "products", "residual", "classes", "cross"] },
    classes: whole(1, 1 << 12),
    clip: number({ least: 1e-9, most: 1e9 }),
    reach: number({ least: 1 / WIDE, most: WIDE, default: WIDE }),
    limit: number({ least: 1 / WIDE, most: WIDE }),
    centers: real(["d"], -WIDE, WIDE),
    scales: real(["d"], 1 / WIDE, WIDE),
    matrix: real(["q", "d"], -WIDE, WIDE),
    offsets: real(["c", "q"], -WIDE, WIDE),
    weights: { ...real(["w"], -WIDE, WIDE), ...ALONE },
    theta: { ...real(["s", "t"], -WIDE, WIDE), default: [[1]] },
  },
};

function malformed(name: string): Refused {
  return new Refused("form", `the task cannot be understood: ${name}`);
}

/** The fields of a task that somebody sent, and the lengths that they give names to. */
export function readFields(rules: Rules, sent: Fields): { fields: Fields; sizes: Sizes } {
  for (const name of Object.keys(sent)) if (name !== "name" && !Object.hasOwn(rules, name)) throw malformed(name);
  const fields: Fields = {};
  const sizes: Sizes = {};
  const names = Object.keys(rules).sort((a, b) => +(rules[a]!.kind === "array") - +(rules[b]!.kind === "array"));
  for (const name of names) {
    const rule = rules[name]!;
    if (!Object.hasOwn(sent, name) && rule.default === undefined) throw malformed(name);
    const given = Object.hasOwn(sent, name) ? sent[name] : rule.default;
    if (!fits(name, given, rule, sizes)) throw malformed(name);
    fields[name] = given;
  }
  return { fields, sizes };
}

function fits(name: string, given: any, rule: Rule, sizes: Sizes): boolean {
  switch (rule.kind) {
    case "flag":
      return typeof given === "boolean";
    case "choice":
      return typeof given === "string" && given.trim().length > 0 && given.length <= 200
        && (!rule.options || rule.options.includes(given));
    case "number":
      return (given === null && rule.optional === true) || inRange(given, rule);
    case "whole":
      if (!Number.isSafeInteger(given) || !inRange(given, rule)) return false;
      sizes[name] = given;
      return true;
    case "array":
      return shaped(given, rule, rule.shape!) && lengths(given, rule.shape!, sizes);
  }
}

function inRange(given: any, rule: Rule): boolean {
  if (typeof given !== "number" || !Number.isFinite(given)) return false;
  return given >= (rule.least ?? -LARGEST) && given <= (rule.most ?? LARGEST)
    && (rule.above === undefined || given > rule.above);
}

/** Nested lists of numbers in range, as deep as the shape, rows of equal length. */
function shaped(given: any, rule: Rule, shape: string[]): boolean {
  if (shape.length === 0) return inRange(given, rule) && (!rule.integers || Number.isSafeInteger(given));
  if (!Array.isArray(given)) return false;
  const inner = shape.slice(1);
  if (inner.length && given.some((row) => !Array.isArray(row) || row.length !== given[0].length)) return false;
  return given.every((row) => shaped(row, rule, inner)) && (given.length > 0 || inner.length === 0);
}

function lengths(given: any, shape: string[], sizes: Sizes): boolean {
  let part = given;
  for (const name of shape) {
    if ((sizes[name] ??= part.length) !== part.length) return false;
    part = part[0];
  }
  return true;
}
