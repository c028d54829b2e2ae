/** The language of this page: chosen in the link or the list, else the browser's. */

import { Refused } from "../src/index.ts";
import { Unreadable } from "../files/index.ts";
import { en, type Code, type Words } from "../words/en.ts";
import { languages } from "../words/languages.ts";
import { fill, written, type Parameters } from "../words/words.ts";
import { find } from "./dom.ts";
import { Unfit, type Sentence } from "./reading.ts";

export type { Code } from "../words/en.ts";

const TEST = "en-XA"; // the usual name of the language in which only words that can be translated are marked

const wanted = [new URLSearchParams(location.hash.slice(1)).get("lang") ?? "", ...(navigator.languages ?? [])];
const codeOf = (tag: string) => (tag === TEST ? tag : tag.slice(0, 2).toLowerCase());
const found = wanted.find((tag) => codeOf(tag) === TEST || Object.hasOwn(languages, codeOf(tag))) ?? "en";
export const language = codeOf(found);
const region = wanted.find((tag) => tag.length > 2 && codeOf(tag) === language) ?? language; // for dates and numbers
const words: Words = language === TEST ? marked(en) : languages[language]!;

/** Every word between brackets: what stands outside of them on the page is in no message file. */
function marked(all: Words): Words {
  return Object.fromEntries(Object.entries(all).map(([code, text]) => [code, `⟦${text}⟧`])) as Words;
}

/** A message in the page's language. */
export function tell(code: Code, parameters: Parameters = {}): string {
  return fill(words, region, code, parameters);
}

/** A value of a row: a number as the language writes it, or a word. */
export function cell(value: unknown): string {
  return typeof value === "number" ? written(value, region) : String(value);
}

/** A number as it is written in a picture: with three digits. */
export function short(value: number): string {
  return new Intl.NumberFormat(region, { maximumSignificantDigits: 3 }).format(value);
}

export function told({ code, parameters }: Sentence): string {
  return tell(code, parameters);
}

/** What went wrong, in the page's language. The client's own words stand where only an engineer can mend it. */
export function problemWords(error: unknown): string {
  if (error instanceof Unfit) return told(error.sentence);
  if (error instanceof Unreadable) return tell(error.code, error.parameters);
  if (!(error instanceof Refused)) return tell("problem.here");
  const code = `refused.${error.words?.code ?? error.why}`;
  return tell((Object.hasOwn(en, code) ? code : error.why === "collector" ? "refused.answered" : "refused.form") as Code, { detail: error.message, ...error.words?.parameters });
}

/** Put words into the page's own elements, and offer the other languages. */
export function translate(): void {
  document.documentElement.lang = language;
  document.querySelectorAll<HTMLElement>("[data-words]").forEach((element) => (element.textContent = tell(element.dataset.words as Code)));
  document.querySelectorAll<HTMLElement>("[data-label]").forEach((element) => element.setAttribute("aria-label", tell(element.dataset.label as Code)));
  const list = find<HTMLSelectElement>("language");
  list.replaceChildren(...Object.entries(languages).map(([code, all]) => {
    const option = new Option(all["page.language"], code, false, code === language);
    option.lang = code;
    return option;
  }));
  list.addEventListener("change", () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    parts.set("lang", list.value);
    location.hash = parts.toString(); // and the page is read anew
  });
}
