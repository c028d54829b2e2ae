/** Something that is refused, with nothing spent and nothing sent. The message never shows data. */
export class Refused extends Error {
  /** `kind`: not asked by the study; `form`: malformed; `terms`: other than agreed; `budget`; `plan`; `used`: answered before. */
  readonly why: "kind" | "form" | "terms" | "budget" | "plan" | "collector" | "used";

  constructor(why: Refused["why"], message: string) {
    super(message);
    this.name = "Refused";
    this.why = why;
  }
}

/** A line of somebody else's words, without what could pass for something else. */
export function printable(words: string, most = 300): string {
  return words.slice(0, most).replace(/[\p{C}\p{Z}]/gu, " ");
}
