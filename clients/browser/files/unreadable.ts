/** What is wrong with a file, as a code that can be translated, and in English. */

import { files } from "../words/files.en.ts";
import { fill, type Parameters } from "../words/words.ts";

export type FileCode = keyof typeof files;

/** Something in a file that its owner can put right. `code` and `parameters` are for a translation. */
export class Unreadable extends Error {
  readonly code: FileCode;
  readonly parameters: Parameters;

  constructor(code: FileCode, parameters: Parameters = {}) {
    super(english({ code, parameters }));
    this.name = "Unreadable";
    this.code = code;
    this.parameters = parameters;
  }
}

/** A sentence that can be translated. */
export type Said = { code: FileCode; parameters: Parameters };

/** The sentence in English. */
export function english({ code, parameters }: Said): string {
  return fill(files, "en", code, parameters);
}
