/** Something that is refused, with nothing spent and nothing sent. The message never shows data. */
export class Refused extends Error {
  /** `kind`: not asked by the study; `form`: malformed; `terms`: other than agreed; `budget`; `plan`; `used`: answered before. */
  readonly why: "kind" | "form" | "terms" | "budget" | "plan" | "collector" | "used";
  /** Which of the messages that people meet this is, and what stands in it: for a translation. */
  readonly words: { code: string; parameters: Record<string, string | number> } | null;

  constructor(why: Refused["why"], message: string, code?: string, parameters: Record<string, string | number> = {}) {
    super(message);
    this.name = "Refused";
    this.why = why;
    this.words = code === undefined ? null : { code, parameters };
  }
}

/** A line of somebody else's words, without what could pass for something else. */
export function printable(words: string, most = 300): string {
  return words.slice(0, most).replace(/[\p{C}\p{Z}]/gu, " ");
}
