/** Every language of the page. A new one is a file beside this, and a line here. */

import { de } from "./de.ts";
import { en, type Words } from "./en.ts";

export const languages: Record<string, Words> = { en, de };
