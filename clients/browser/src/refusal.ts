/** Something that is refused, with nothing spent and nothing sent. The message never shows data. */
export class Refused extends Error {
  /** `kind`: not asked by the study; `form`: malformed; `terms`: other than agreed; `budget`; `plan`. */
  readonly why: "kind" | "form" | "terms" | "budget" | "plan" | "collector";

  constructor(why: Refused["why"], message: string) {
    super(message);
    this.name = "Refused";
    this.why = why;
  }
}
