/** What leaves the device, beside what it hides. */

import { drawn, domainOf, features, labelNumber, readTask, truth, type Curve, type Plan } from "../src/index.ts";
import { find, say, show } from "./dom.ts";
import { curves, type Line } from "./picture.ts";
import { asked } from "./plain_words.ts";
import { isCurve, type Read } from "./reading.ts";

const POINTS = 60;

/** What the person holds: known in the tab where it was chosen, and kept nowhere. */
export type Own = { read: Read; label: unknown };

/** Show what was read: a picture of a curve, or the cells of a row. */
export function own(picture: string, list: string, read: Read | null, more: Line[] = []): void {
  const lines = (read?.lines ?? []).map((values, k): Line => ({ points: read!.points, values, kind: k ? "second" : "line" }));
  show(picture, lines.length > 0);
  if (lines.length > 0) curves(find(picture), [...lines, ...more]);
  find(list).replaceChildren(...(read?.cells ?? []).map((cell) => {
    const line = document.createElement("li");
    line.textContent = cell;
    return line;
  }));
}

/** Show the very bytes; beside them the person's own data, where this tab has seen them. */
export function leaves(plan: Plan, sent: any, body: string, mine: Own | null): void {
  const values: number[] = JSON.parse(body).values;
  say("bytes", body);
  say("asked", sent ? asked(sent, plan, values.length) : "");
  show("stay", mine !== null);
  if (!mine) return;
  say("held", plan.protects === "both" ? "This stays here" : "What you hold");
  say("own-label", `Your ${plan.target_range ? "number" : "label"}: ${mine.label}${plan.protects === "features" ? " (it leaves as it is)" : ""}`);
  const noisy = noisyCurve(plan, sent, values);
  own("own-curve", "own-cells", mine.read, noisy);
  show("noisy-words", noisy.length > 0);
  sideBySide(plan, sent, values, mine.read.curve, mine.label);
}

/** The curve that a reader of the reply could draw, where the reply is one. */
function noisyCurve(plan: Plan, sent: any, values: number[]): Line[] {
  if (!["vector", "moment"].includes(sent?.name) || !isCurve(plan) || plan.encoder.basis.parts) return [];
  const [low, high] = domainOf(plan);
  const points = Array.from({ length: POINTS }, (_, k) => low + ((high - low) * k) / (POINTS - 1));
  return [{ points, values: drawn(plan.encoder, values.slice(0, sent.dimension), points), kind: "noisy" }];
}

/** True answers and those that are sent, one line each. */
function sideBySide(plan: Plan, sent: any, values: number[], curve: Curve, label: unknown): void {
  const told = sent ? truth(readTask(plan, sent), features(plan, curve, label), labelNumber(plan, label)) : null;
  show("answers", told !== null);
  if (!told) return;
  const word = (sign: number) => (sign > 0 ? "yes" : "no");
  find("answer-lines").replaceChildren(...told.map((sign, k) => {
    const line = document.createElement("tr");
    for (const text of [String(k + 1), word(sign), word(values[k]!)]) line.insertCell().textContent = text;
    return line;
  }));
}
