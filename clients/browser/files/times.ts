/** Times as devices write them, as what a clock on the person's wall has shown. */

/** Milliseconds since 1970 on the wall's clock; without a date, since midnight. */
export type Moment = { wall: number; dated: boolean };

/** Whether 3/4/2026 is in March or in April. */
export type Order = "month" | "day";

const DAY = 86_400_000;
const MONTHS = ["jan", "feb", "m[aä]r|mrz", "apr", "may|mai", "jun", "jul", "aug", "sep", "o[ck]t", "nov", "de[cz]"].map((name) => new RegExp(`^(?:${name})`, "i"));
const CLOCK = String.raw`(\d{1,2}):(\d\d)(?::(\d\d(?:[.,]\d{1,9})?))?(?: ?([AaPp])\.?[Mm]\.?)?`;
const ZONE = String.raw`(?: ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?`;
const WITH_TIME = String.raw`(?:(?:[T_]|,? +)${CLOCK}${ZONE})?`;
const PATTERNS: [RegExp, (found: RegExpExecArray, order: Order) => [number, number, number]][] = [
  [new RegExp(String.raw`^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})${WITH_TIME}$`), ([, y, , m, d]) => [+y!, +m!, +d!]],
  [new RegExp(String.raw`^(\d{1,2})(\.) ?(\d{1,2})\. ?(\d{4}|\d\d)${WITH_TIME}$`), ([, d, , m, y]) => [+y!, +m!, +d!]],
  [new RegExp(String.raw`^(\d{1,2})([-/])(\d{1,2})\2(\d{4}|\d\d)${WITH_TIME}$`), ([, a, , b, y], order) => (order === "month" ? [+y!, +a!, +b!] : [+y!, +b!, +a!])],
  [new RegExp(String.raw`^(\d{1,2})(\.?[ -])([A-Za-zä]{3,9})\.?[ -](\d{4})${WITH_TIME}$`), ([, d, , m, y]) => [+y!, month(m!), +d!]],
  [new RegExp(String.raw`^([A-Za-zä]{3,9})(\.? )(\d{1,2}),? (\d{4})${WITH_TIME}$`), ([, m, , d, y]) => [+y!, month(m!), +d!]],
];
const ALONE = new RegExp(`^${CLOCK}${ZONE}$`);
const SLASHED = /^(\d{1,2})[-/](\d{1,2})[-/](\d{4}|\d\d)(?!\d)/;
const LONGEST = 48; // characters of a time

const month = (name: string): number => MONTHS.findIndex((one) => one.test(name)) + 1;

/** A written time; null where it is none. An instant (UTC) becomes the time in the zone; another offset is the wall's own. */
export function readTime(text: string, order: Order, zone: Zone): Moment | null {
  if (text.length > LONGEST || !/\d/.test(text)) return null;
  const alone = ALONE.exec(text);
  if (alone) {
    const [, h, m, s, half] = alone;
    const within = clock(h!, m!, s, half);
    return within === null ? null : { wall: within, dated: false };
  }
  for (const [pattern, date] of PATTERNS) {
    const found = pattern.exec(text);
    if (!found) continue;
    const [year, monthNumber, day] = date(found, order);
    const full = year < 100 ? 2000 + year : year;
    const midnight = Date.UTC(full, monthNumber - 1, day);
    const exists = new Date(midnight).getUTCDate() === day && monthNumber >= 1 && monthNumber <= 12 && full >= 1900 && full < 2200;
    const [h, m, s, half, offset] = found.slice(-5);
    const within = h === undefined ? 0 : clock(h, m!, s, half);
    if (!exists || within === null) return null;
    return { wall: offset !== undefined && isUtc(offset) ? zone.wall(midnight + within) : midnight + within, dated: true };
  }
  return null;
}

function clock(hour: string, minute: string, second: string | undefined, half: string | undefined): number | null {
  const [h, m, s] = [Number(hour), Number(minute), Number((second ?? "0").replace(",", "."))];
  if (m > 59 || s >= 61 || h > 24 || (half !== undefined && (h < 1 || h > 12))) return null;
  const full = half === undefined ? h : (h % 12) + (half.toLowerCase() === "p" ? 12 : 0);
  return Math.round((full * 3600 + m * 60 + s) * 1000);
}

const isUtc = (offset: string): boolean => /^(Z|UTC|GMT|[+-]00:?(00)?)$/.test(offset);

/**
 * The order of day and month in a column of dates: what a number above 12 shows, or AM and PM; else
 * the order in which the dates lie closer together.
 */
export function orderOf(cells: string[]): Order {
  let [least, most] = [[Infinity, Infinity], [-Infinity, -Infinity]];
  for (const cell of cells) {
    const found = SLASHED.exec(cell);
    if (!found) continue;
    const [a, b, y] = [Number(found[1]), Number(found[2]), Number(found[3])];
    if (a > 12) return "day";
    if (b > 12 || /[ap]\.?m\.?$/i.test(cell)) return "month";
    [[a, b], [b, a]].forEach(([m, d], k) => {
      const at = Date.UTC(y, m! - 1, d);
      least[k] = Math.min(least[k]!, at);
      most[k] = Math.max(most[k]!, at);
    });
  }
  return most[1]! - least[1]! < most[0]! - least[0]! ? "day" : "month";
}

/** From here on, a whole number of seconds since 1970 is a date: from 2000 to 2100. */
const UNIX = [946_684_800, 4_102_444_800] as const;

/** A number of seconds, milli-, micro- or nanoseconds since 1970 as milliseconds; null where it is none of them. */
export function unixTime(value: number): number | null {
  for (const perSecond of [1, 1e3, 1e6, 1e9]) {
    const seconds = value / perSecond;
    if (seconds >= UNIX[0] && seconds < UNIX[1]) return Math.round(seconds * 1000);
  }
  return null;
}

/** A time zone: which time its clocks show at an instant. */
export class Zone {
  readonly name: string;
  /** Whether a time was given in UTC, so that the zone mattered. */
  used = false;
  #parts: Intl.DateTimeFormat;
  #offsets = new Map<number, number>();

  /** `name`: as "Europe/Berlin"; by default the device's own. */
  constructor(name?: string) {
    this.#parts = new Intl.DateTimeFormat("en-US", {
      ...(name === undefined ? {} : { timeZone: name }), hourCycle: "h23",
      year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric",
    });
    this.name = this.#parts.resolvedOptions().timeZone;
  }

  wall(instant: number): number {
    this.used = true;
    const quarter = Math.floor(instant / 900_000); // no clock changes within a quarter of an hour
    let offset = this.#offsets.get(quarter);
    if (offset === undefined) {
      const at = quarter * 900_000;
      const part = Object.fromEntries(this.#parts.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
      offset = Date.UTC(part.year!, part.month! - 1, part.day!, part.hour!, part.minute!) - at;
      this.#offsets.set(quarter, offset);
    }
    return instant + offset;
  }
}

/** The day of a time on the wall, as 2026-11-16. */
export function dayOf(wall: number): string {
  return new Date(Math.floor(wall / DAY) * DAY).toISOString().slice(0, 10);
}
