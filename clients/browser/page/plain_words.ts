/** What a plan means, in words for whoever is asked. */

import { asks, assumptions, channelsOf, domainOf, type Plan } from "../src/index.ts";
import type { Parameter } from "../words/words.ts";
import { tell, type Code } from "./language.ts";
import { fieldsOf, isCurve, type Units } from "./reading.ts";

const WEAK = 0.9; // as often is the truth told that one cannot deny it with a straight face

const MANY = 8;

function listed(words: string[], by: "and" | "or"): Parameter {
  const shown = words.length > MANY ? [...words.slice(0, MANY - 1), tell("plan.others", { count: words.length - MANY + 1 })] : words;
  return { listed: shown, by };
}

/** How often one yes/no question would be answered truly. */
export function truly(plan: Plan): number {
  return 1 / (1 + Math.exp(-plan.epsilon));
}

export function what(plan: Plan): string {
  const data = { code: isCurve(plan) ? "plan.curves" : "plan.numbers" };
  if (plan.target_range) return tell("plan.what-number", { data, low: plan.target_range[0], high: plan.target_range[1] });
  return tell("plan.what", { data, classes: listed(plan.classes.map((one) => tell("plan.quoted", { name: String(one) })), "and") });
}

export function needed(plan: Plan, units: Units = { t: "", x: "" }): string {
  const label: Parameter = plan.target_range ? tell("plan.needs-number") : tell("plan.needs-label", { classes: listed(plan.classes.map(String), "or") });
  return tell("plan.needs", { curve: curveWords(plan, units), label });
}

function curveWords(plan: Plan, units: Units): string {
  const { table, basis } = plan.encoder;
  if (isCurve(plan)) {
    const [low, high] = domainOf(plan);
    const count = channelsOf(plan);
    const [x, t] = [units.x && ` (${units.x})`, units.t && ` (${units.t})`];
    return tell(count === 1 ? "plan.curve" : "plan.curve-channels", { count, x, t, low, high });
  }
  const typed = fieldsOf(plan).length > 0 ? "-typed" : "";
  if (table?.named) return tell(`plan.row${typed}`, { columns: listed(table.columns.map(({ key }) => String(key)), "and") });
  return tell(`plan.row-numbers${typed}`, { count: table ? table.columns.length : basis.n_basis! });
}

export function promise(plan: Plan): string {
  const code = { both: "plan.promise", labels: "plan.promise-labels", features: "plan.promise-features" } as const;
  return tell(code[plan.protects], { epsilon: plan.epsilon, times: Number(Math.exp(plan.epsilon).toPrecision(3)) });
}

export function verdict(plan: Plan): string {
  return tell(truly(plan) > WEAK ? "plan.weak" : "plan.strong");
}

export function stays(plan: Plan): string {
  return tell({ both: "plan.stays", labels: "plan.stays-labels", features: "plan.stays-features" }[plan.protects] as Code, {
    label: { code: plan.target_range ? "page.needs-number" : "page.needs-label" },
  });
}

/** That which a plan takes for granted, as a person agrees to it. */
export function granted(plan: Plan): string {
  const code = { both: "plan.stays", labels: "plan.granted-labels", features: "plan.granted-features" } as const;
  return assumptions(plan).length ? tell(code[plan.protects]) : "";
}

const QUESTIONS: Record<string, Code> = {
  stump: "question.stump", confidence: "question.confidence", evaluation: "question.evaluation", member: "question.evaluation",
  summary: "question.summary", vector: "question.vector", moment: "question.vector",
};

const YES_OR_NO: Code[] = ["question.stump", "question.confidence", "question.evaluation"];

/** What a study asks, in a sentence. */
export function inShort(plan: Plan): string {
  const data = { code: isCurve(plan) ? "plan.your-curve" : "plan.your-numbers" };
  const label: Parameter = plan.target_range ? { code: "plan.your-number" } : tell("plan.your-label", { classes: listed(plan.classes.map(String), "or") });
  const yesOrNo = Object.keys(asks(plan)).every((name) => YES_OR_NO.includes(QUESTIONS[name]!));
  return tell(yesOrNo ? "plan.asked-questions" : "plan.asked-values", { data, label });
}

/** Which questions a study can ask, before anybody agrees to it. */
export function questions(plan: Plan): string {
  const data = { code: isCurve(plan) ? "plan.your-curve" : "plan.your-numbers" };
  const codes = [...new Set(Object.keys(asks(plan)).flatMap((name) => QUESTIONS[name] ?? []))];
  return tell(codes.length > 1 ? "plan.questions" : "plan.question", { questions: { listed: codes.map((code) => tell(code, { data })), by: "or" } });
}

/** What a task asks for, and what its reply is. */
export function asked(task: { name: string } & Record<string, any>, plan: Plan, count: number): string {
  const data = { code: isCurve(plan) ? "plan.your-curve" : "plan.your-numbers" };
  switch (task.name) {
    case "stump":
      return tell(task.uses_label === false ? "asked.stump" : "asked.stump-label", { count, data });
    case "confidence":
      return tell("asked.confidence", { count });
    case "evaluation":
    case "member":
      return tell("asked.evaluation", { count });
    case "summary":
      return tell("asked.summary");
    default:
      if (plan.protects === "labels") return tell("asked.labels");
      return tell(plan.protects === "features" ? "asked.features" : "asked.both", { data });
  }
}
