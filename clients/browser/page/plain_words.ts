/** What a plan means, in words for whoever is asked. */

import { assumptions, channelsOf, domainOf, type Plan } from "../src/index.ts";
import { isCurve } from "./reading.ts";

const WEAK = 0.9; // as often is the truth told that one cannot deny it with a straight face

const MANY = 8;

function listed(words: string[], last: string): string {
  const [shown, more] = words.length > MANY ? [words.slice(0, MANY - 1), `${words.length - MANY + 1} others`] : [words.slice(0, -1), words.at(-1)];
  return shown.length ? `${shown.join(", ")} ${last} ${more}` : String(more ?? "");
}

/** How often one yes/no question would be answered truly. */
export function truly(plan: Plan): number {
  return 1 / (1 + Math.exp(-plan.epsilon));
}

export function what(plan: Plan): string {
  const classes = plan.classes.map((one) => `“${one}”`);
  const goal = plan.target_range
    ? `go together with a number from ${plan.target_range[0]} to ${plan.target_range[1]}`
    : `tell ${listed(classes, "and")} apart`;
  return `To learn how ${isCurve(plan) ? "curves" : "numbers"} like yours ${goal}. The result is the same for everybody and names nobody.`;
}

export function needed(plan: Plan, units = { t: "", x: "" }): string {
  const [curve, label] = [curveWords(plan, units), plan.target_range ? "that number of yours" : `your label (${listed(plan.classes.map(String), "or")})`];
  return `${curve}, and ${label}.`;
}

function curveWords(plan: Plan, units: { t: string; x: string }): string {
  const { table, basis } = plan.encoder;
  if (isCurve(plan)) {
    const [low, high] = domainOf(plan);
    const count = channelsOf(plan);
    const [x, t] = [units.x && ` (${units.x})`, units.t && ` (${units.t})`];
    return `A file with a curve of yours: ${count === 1 ? "values" : `${count} values each`}${x} at several points t between ${low} and ${high}${t}`;
  }
  if (table?.named) return `A file with your ${listed(table.columns.map(({ key }) => String(key)), "and")}`;
  return `A file with ${table ? table.columns.length : basis.n_basis} numbers of yours`;
}

export function promise(plan: Plan): string {
  const times = Math.exp(plan.epsilon).toPrecision(3);
  const [whatever, other] = {
    both: ["your data are", "anybody else's"],
    labels: ["your label is", "another label"],
  }[plan.protects as string] ?? ["your data are", "other data and the same label"];
  return `ε = ${plan.epsilon}: whatever ${whatever}, your reply is at most ${times} times as likely as with ${other}.`;
}

export function verdict(plan: Plan): string {
  return truly(plan) > WEAK
    ? "Whoever reads the reply can be rather sure of your answer: this is weak protection."
    : "Whoever reads the reply cannot be sure of your answer.";
}

export function stays(plan: Plan): string {
  if (plan.protects === "both") return "Your data and your label stay on this device: the reply is randomized, for both together.";
  const [assumed] = assumptions(plan);
  return plan.protects === "labels"
    ? `Your data would leave as they are: this study takes for granted that ${assumed}. Only your label is protected.`
    : `Your label would leave as it is: this study takes for granted that ${assumed}. Only your data are protected.`;
}

/** What a task asks for, and what its reply is. */
export function asked(task: { name: string } & Record<string, any>, plan: Plan, count: number): string {
  const questions = count === 1 ? "one yes/no question" : `${count} yes/no questions`;
  const own = isCurve(plan) ? "curve" : "numbers";
  switch (task.name) {
    case "stump":
      return `You were asked ${questions}: whether a feature of your ${own} is above a number${task.uses_label === false ? "" : ", turned round for one label"}.`;
    case "confidence":
      return `You were asked ${questions}: how far a public rule is off, for you.`;
    case "evaluation":
    case "member":
      return "You were asked one yes/no question: whether a public rule is right about you.";
    case "summary":
      return "You were asked for a summary of your features and your label: the number of one of many random patterns, drawn so that those like yours are likelier.";
    default:
      return plan.protects === "labels"
        ? "You were asked for the features of your data as they are, and for your label with noise."
        : `You were asked for the features of your ${own} with noise${plan.protects === "features" ? ", and for your label as it is" : ", and your label with noise too"}.`;
  }
}
