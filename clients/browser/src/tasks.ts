/** What each task computes of a person's features and label, and the mechanism it goes through. */

import { bestCapIndex, bestClassIndex, capIndex, classIndex } from "./codewords.ts";
import { decimal, roundedDown } from "./exact.ts";
import type { Fields, Sizes } from "./fields.ts";
import { boxMechanism, questionResponse, randomizedResponse } from "./mechanisms.ts";
import { Refused } from "./refusal.ts";
import type { Source } from "./words.ts";

/** A task that was read and may be asked. */
export type Task = { name: string; fields: Fields; sizes: Sizes };

const sign = (yes: boolean): number => (yes ? 1 : -1);
const clamp = (x: number, most: number): number => Math.min(Math.max(x, -most), most);

/** How many features and distances it asks about. */
export function looksAt({ name, fields, sizes }: Task): number {
  if (name === "stump") return 1 + Math.max(-1, ...fields.coordinates.flat());
  return name === "summary" ? sizes.d! : sizes.dimension!;
}

/** How many features those are made of. */
export function columns(task: Task): number {
  return task.sizes.f || looksAt(task);
}

/** The first features and their distances from the folds; all features, without folds. */
function folded(z: number[], folds: number[] = []): number[] {
  const own = z.slice(0, folds.length);
  return folds.length ? [...own, ...own.map((x, j) => Math.abs(x - folds[j]!))] : z;
}

/** The answers as they are, of tasks that ask yes or no: for the person's own eyes. Null for others. */
export function truth(task: Task, features: number[], label: number): number[] | null {
  const { name, fields } = task;
  const z = folded(boxed(features), fields.folds);
  switch (name) {
    case "stump":
    case "confidence":
      return questions(task, z, label);
    case "evaluation":
      return [sign(decided(scores(fields, z)) === label)];
    case "member":
      return scores(fields, z).map((score, m) => sign(score >= 0 === fields.positive[0][m].includes(label)));
  }
  return null;
}

function boxed(features: number[]): number[] {
  return features.map((x) => clamp(Number.isNaN(x) ? 0 : x, 1));
}

/** The values of the reply: whatever happens inside, they went through the mechanism. */
export function answer(task: Task, features: number[], label: number, source: Source): number[] {
  const { name, fields } = task;
  const inside = boxed(features);
  if (inside.length < columns(task)) throw new Refused("form", "the task asks about more features than there are");
  const z = folded(inside, fields.folds);
  const epsilon: number = fields.epsilon;
  switch (name) {
    case "stump":
    case "confidence":
      return questionResponse(epsilon, truth(task, features, label)!, source);
    case "evaluation":
    case "member": {
      const bits = truth(task, features, label)!;
      const [n, d] = decimal(epsilon);
      const each = roundedDown(n, d * BigInt(bits.length));
      return bits.map((bit) => randomizedResponse(each, bit, source));
    }
    case "moment": {
      const y = sign(label === fields.positive[0]);
      return boxMechanism(fields.mechanism_name, epsilon, z.slice(0, fields.dimension).map((x) => y * x), source);
    }
    case "vector":
      return curveAndLabel(fields, z, label, source);
    case "summary":
      return summary(task, z, label, source);
  }
  throw new Refused("kind", "this client knows no such task");
}

function questions({ name, fields }: Task, z: number[], label: number): number[] {
  if (name === "stump") {
    const y = fields.uses_label ? sign(label === fields.positive[0]) : 1;
    return fields.thresholds[0].map((t: number, k: number) => y * sign(z[fields.coordinates[0][k]]! > t));
  }
  const right = decided(scores(fields, z)) === label ? 1 : 0;
  const off = right - Math.max(...chances(fields, z));
  return fields.dithers[0].map((u: number) => sign(off > u));
}

function scaled(fields: Fields, z: number[], m: number): number[] {
  return fields.centers[0][m].map((center: number, j: number) => {
    const x = (z[j]! - center) / fields.scales[0][m][j];
    return fields.clipped ? clamp(x, 1) : x;
  });
}

function scores(fields: Fields, z: number[]): number[] {
  return fields.intercept[0].map((start: number, m: number) => start + dot(fields.coefficients[0][m], scaled(fields, z, m)));
}

/** The label number behind scores: the sign of one (0 counts as +), or the largest. */
function decided(found: number[]): number {
  return found.length === 1 ? +(found[0]! >= 0) : found.indexOf(Math.max(...found));
}

function chances(fields: Fields, z: number[]): number[] {
  const damped = scores(fields, z).map((score) => fields.damping * score);
  const variances = fields.variances[0].map((open: number[], m: number) => {
    const squares = scaled(fields, z, m).map((x) => x * x);
    return open[0]! + dot(squares, open.slice(1));
  });
  const doubt = variances.reduce((sum: number, v: number) => sum + v, 0) / variances.length;
  const moderated = damped.map((score: number) => score / Math.sqrt(1 + (Math.PI / 8) * doubt));
  if (moderated.length === 1) return [logistic(-moderated[0]!), logistic(moderated[0]!)];
  const most = Math.max(...moderated);
  const weights = moderated.map((score: number) => Math.exp(score - most));
  const total = weights.reduce((sum: number, weight: number) => sum + weight, 0);
  return weights.map((weight: number) => weight / total);
}

function logistic(x: number): number {
  return 1 / (1 + Math.exp(-x));
}

function softmax(scores: number[]): number[] {
  const top = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - top));
  const sum = powers.reduce((total, x) => total + x, 0);
  return powers.map((x) => x / sum);
}

function dot(a: number[], b: number[]): number {
  return a.reduce((sum, x, k) => sum + x * b[k]!, 0);
}

/** What a label and a curve cost of ε: fractions of its decimal text, rounded down. */
export function shares(fields: Fields): [number, number] {
  if (fields.protects !== "both") return [fields.epsilon, fields.epsilon];
  const [n, d] = decimal(fields.epsilon);
  const [a, b] = fields.label_share === null ? [1n, BigInt(fields.dimension + 1)] : decimal(fields.label_share);
  return [roundedDown(n * (b - a), d * b), roundedDown(n * a, d * b)];
}

function curveAndLabel(fields: Fields, z: number[], label: number, source: Source): number[] {
  const curve = z.slice(0, fields.dimension);
  const y = sign(fields.positive.includes(label));
  const [forCurve, forLabel] = shares(fields);
  const hidden = fields.protects;
  const sent = hidden === "labels" ? curve : boxMechanism(fields.mechanism_name, forCurve, curve, source);
  return [...sent, hidden === "features" ? y : randomizedResponse(forLabel, y, source)];
}

/** Shortened to the limit where it is longer, in units of it. */
function cut(vector: number[], limit: number): number[] {
  const length = Math.max(Math.sqrt(dot(vector, vector)), limit);
  return vector.map((x) => x / length);
}

function summary({ fields, sizes }: Task, z: number[], y: number, source: Source): number[] {
  const label = Math.min(Math.max(y, 0), fields.classes - 1);
  const inside = fields.centers.map((center: number, j: number) => clamp((z[j]! - center) / fields.scales[j], fields.clip));
  const own: number[] = fields.offsets[sizes.c! > 1 ? label : 0];
  const psi: number[] = fields.matrix.map((row: number[], k: number) => dot(row, inside) + own[k]!);
  const weighted = (entries: number[]) => entries.map((x, k) => x * fields.weights[k]);
  const reached = (entries: number[]) => cut(weighted(entries), fields.reach).map((x) => x * fields.reach);
  let vector: number[];
  switch (fields.statistic) {
    case "spread":
      vector = cut([...psi, ...psi.map((x) => x * x - 1)], fields.limit);
      break;
    case "products": {
      const short = cut(psi, fields.limit);
      vector = short.flatMap((x, i) => short.slice(i).map((other, j) => x * other * (j ? Math.SQRT2 : 1)));
      break;
    }
    case "cross":
      vector = cut(reached([1, ...psi.slice(1)]).map((x) => psi[0]! * x), fields.limit);
      break;
    case "residual": {
      const scores: number[] = fields.theta.map((row: number[]) => dot([1, ...psi], row));
      const residuals = scores.length > 1
        ? softmax(scores).map((p, k) => +(k === label) - p)
        : [+(y === 1) - logistic(scores[0]!)];
      const short = reached([1, ...psi]);
      vector = cut(residuals.flatMap((residual) => short.map((x) => residual * x)), fields.limit);
      break;
    }
    default: {
      vector = cut(weighted([1, ...psi]), fields.limit);
      const choice = bestClassIndex(fields.epsilon, vector.length, fields.classes);
      return classIndex(label, vector, source, fields.classes, choice);
    }
  }
  return capIndex(vector, source, bestCapIndex(fields.epsilon, vector.length));
}
