/** What leaves the device, beside what it hides. */

import { drawn, domainOf, type Plan } from "../src/index.ts";
import { find, say, show } from "./dom.ts";
import { cell, tell } from "./language.ts";
import { curves, type Line } from "./picture.ts";
import { asked } from "./plain_words.ts";
import { isCurve, type Read, type Units } from "./reading.ts";

const POINTS = 60;
const ANSWERED = ["stump", "confidence", "evaluation", "member"]; // with yes and no

/** What the person holds: known in the tab where it was chosen, and kept nowhere. */
export type Own = { read: Read; label: unknown; units: Units };

/** Show what was read: a picture of a curve, or the cells of a row. */
export function own(picture: string, list: string, read: Read | null, units: Units, more: Line[] = []): void {
  const lines = (read?.lines ?? []).map((values, k): Line => ({ points: read!.points, values, kind: k ? "second" : "line" }));
  show(picture, lines.length > 0);
  if (lines.length > 0) curves(find(picture), [...lines, ...more], units);
  find(list).replaceChildren(...(read?.cells ?? []).map(({ name, value }) => {
    const line = document.createElement("li");
    line.textContent = `${name}: ${value === null ? tell("read.unknown-cell") : cell(value)}`;
    return line;
  }));
}

/**
 * Show the very bytes; beside them the person's own data, where this tab has seen them. The true
 * answer is not shown: whoever saw it beside another one would be tempted to withhold the reply,
 * and replies that are sent only when they are true protect nobody.
 */
export function leaves(plan: Plan, sent: any, body: string, mine: Own | null): void {
  const values: number[] = JSON.parse(body).values;
  say("bytes", body);
  say("asked", sent ? asked(sent, plan, values.length) : "");
  const answers = ANSWERED.includes(sent?.name) ? values.map((sign) => tell(sign > 0 ? "page.yes-word" : "page.no-word")) : [];
  say("answers", answers.length ? tell("page.answers", { count: answers.length, answers: answers.join(", ") }) : "");
  show("stay", mine !== null);
  if (!mine) return;
  say("held", tell(plan.protects === "both" ? "page.held" : "page.held-clear"));
  const clear = plan.protects === "features" ? "-clear" : "";
  say("own-label", tell(`page.own-${plan.target_range ? "number" : "label"}${clear}`, { label: mine.label as string | number }));
  const noisy = noisyCurve(plan, sent, values);
  own("own-curve", "own-cells", mine.read, mine.units, noisy);
  show("noisy-words", noisy.length > 0);
}

/** The curve that a reader of the reply could draw, where the reply is one. */
function noisyCurve(plan: Plan, sent: any, values: number[]): Line[] {
  if (!["vector", "moment"].includes(sent?.name) || !isCurve(plan) || plan.encoder.basis.parts) return [];
  const [low, high] = domainOf(plan);
  const points = Array.from({ length: POINTS }, (_, k) => low + ((high - low) * k) / (POINTS - 1));
  return [{ points, values: drawn(plan.encoder, values.slice(0, sent.dimension), points), kind: "noisy" }];
}
