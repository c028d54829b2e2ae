/** Messages with parameters, in the language of whoever reads them. */

/** What stands in the fields of a message: text, a number, a day (2026-11-16), another message or some of them. */
export type Parameter = string | number | { code: string } | { day: string } | { listed: Parameter[]; by: "and" | "or" };
export type Parameters = Record<string, Parameter>;
export type Messages = Record<string, string>;

const FIELD = /\{(\w+)(?:\|([^}]*))?\}/g;

/**
 * A message with its fields filled in. `{n}` is a parameter, a number in the language's own form;
 * `{n|one:line|other:lines}` is the word that goes with the number, by the plural forms of the language.
 */
export function fill(messages: Messages, language: string, code: string, parameters: Parameters = {}): string {
  return (messages[code] ?? code).replace(FIELD, (whole, name: string, forms: string | undefined) => {
    const value = parameters[name];
    if (value === undefined) return whole;
    if (forms === undefined) return shown(messages, language, value, parameters);
    const words = new Map(forms.split("|").map((form) => [form.slice(0, form.indexOf(":")), form.slice(form.indexOf(":") + 1)]));
    return words.get(new Intl.PluralRules(language).select(Number(value))) ?? words.get("other") ?? "";
  });
}

function shown(messages: Messages, language: string, value: Parameter, parameters: Parameters): string {
  if (typeof value === "number") return written(value, language);
  if (typeof value === "string") return value;
  if ("code" in value) return fill(messages, language, value.code, parameters);
  if ("day" in value) return new Intl.DateTimeFormat(language, { dateStyle: "full", timeZone: "UTC" }).format(Date.parse(value.day));
  const words = value.listed.map((one) => shown(messages, language, one, parameters));
  return new Intl.ListFormat(language, { type: value.by === "and" ? "conjunction" : "disjunction" }).format(words);
}

/** A number as the language writes it, with all of its digits. */
export function written(value: number, language: string): string {
  return new Intl.NumberFormat(language, { maximumSignificantDigits: 15 }).format(value);
}
