/** Measurements in XML: Apple Health, GPX and TCX, piece by piece and never as a whole. */

import { inWords, type Series } from "./series.ts";
import { readTime, type Zone } from "./times.ts";
import { Unreadable } from "./unreadable.ts";

const LONGEST_TAG = 1 << 16; // characters
export const MOST_POINTS = 5_000_000;

/** Series by name, as they are read. */
export class Collected {
  readonly series = new Map<string, Series>();
  #points = 0;

  add(name: string, unit: string, wall: number, value: number): void {
    if (!Number.isFinite(value)) return;
    if ((this.#points += 1) > MOST_POINTS) throw new Unreadable("file.points", { most: MOST_POINTS });
    let one = this.series.get(name);
    if (!one) {
      if (this.series.size >= 1_000) return;
      this.series.set(name, (one = { name, unit, times: [], values: [], dated: true }));
    }
    one.times.push(wall);
    one.values.push(value);
  }
}

/** What a format does with each element: `open` with its attributes, `close` with its text. */
export type Handler = { open?: (name: string, tag: string) => void; close?: (name: string, text: string) => void };

/** Splits text that comes in pieces into elements. There are no entities but XML's own five, which no number has. */
export class Scanner {
  #rest = "";
  #text = "";
  readonly #handler: Handler;

  constructor(handler: Handler) {
    this.#handler = handler;
  }

  feed(piece: string): void {
    const text = this.#rest + piece;
    let at = 0;
    for (;;) {
      const start = text.indexOf("<", at);
      if (start < 0) {
        this.#said(text.slice(at));
        at = text.length;
        break;
      }
      this.#said(text.slice(at, start));
      const comment = text.startsWith("<!--", start);
      const end = comment ? text.indexOf("-->", start + 4) : endOf(text, start);
      if (end < 0) {
        at = start;
        break;
      }
      if (!comment) this.#element(text.slice(start + 1, end));
      at = end + (comment ? 3 : 1);
    }
    this.#rest = text.slice(at);
    if (this.#rest.length > LONGEST_TAG) throw new Unreadable("file.damaged");
  }

  /** Nothing may be left over. */
  done(): void {
    if (this.#rest.trim() !== "") throw new Unreadable("file.damaged");
  }

  #said(text: string): void {
    if (this.#text.length < 200) this.#text += text.slice(0, 200);
  }

  #element(tag: string): void {
    if (tag[0] === "!" || tag[0] === "?") {
      if (/^!ENTITY/i.test(tag) || /<!ENTITY/i.test(tag)) throw new Unreadable("file.entities");
      return;
    }
    if (tag[0] === "/") {
      this.#handler.close?.(local(tag.slice(1)), this.#text.trim());
    } else {
      this.#handler.open?.(local(tag), tag);
      if (tag.at(-1) === "/") this.#handler.close?.(local(tag), "");
    }
    this.#text = "";
  }
}

/** Where a tag ends: a > between quotes is none. */
function endOf(text: string, start: number): number {
  if (text[start + 1] === "!") return text.indexOf(">", start);
  const whole = /[^">]*(?:"[^"]*"[^">]*)*>/y;
  whole.lastIndex = start;
  return whole.test(text) ? whole.lastIndex - 1 : -1;
}

/** An element's name without its prefix. */
function local(tag: string): string {
  const name = /^[^\s/>]+/.exec(tag)?.[0] ?? "";
  return name.slice(name.indexOf(":") + 1);
}

function attribute(tag: string, name: string): string {
  const start = tag.indexOf(` ${name}="`);
  return start < 0 ? "" : tag.slice(start + name.length + 3, tag.indexOf('"', start + name.length + 3));
}

/** Records of an Apple Health export: the time on the wall when a measurement began. */
export function apple(found: Collected, zone: Zone): Handler {
  const names = new Map<string, string>();
  return {
    open(name, tag) {
      if (name !== "Record") return;
      const type = attribute(tag, "type");
      const value = attribute(tag, "value");
      if (value === "" || !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(value)) return;
      const time = readTime(attribute(tag, "startDate"), "month", zone);
      if (!time) return;
      let words = names.get(type);
      if (words === undefined) names.set(type, (words = inWords(type)));
      found.add(words, attribute(tag, "unit"), time.wall, Number(value));
    },
  };
}

const QUANTITIES: Record<string, [string, string]> = {
  hr: ["heart rate", "bpm"],
  HeartRateBpm: ["heart rate", "bpm"],
  ele: ["altitude", "m"],
  AltitudeMeters: ["altitude", "m"],
  DistanceMeters: ["distance", "m"],
  cad: ["cadence", "1/min"],
  Cadence: ["cadence", "1/min"],
  RunCadence: ["cadence", "1/min"],
  atemp: ["temperature", "°C"],
  power: ["power", "W"],
  Watts: ["power", "W"],
  speed: ["speed", "m/s"],
  Speed: ["speed", "m/s"],
};

/** Points of a track (GPX `trkpt`, TCX `Trackpoint`). Where somebody was is not read. */
export function track(found: Collected, zone: Zone): Handler {
  let values: [string, string][] | null = null;
  let [time, within] = ["", ""];
  return {
    open(name) {
      if (name === "trkpt" || name === "Trackpoint") [values, time] = [[], ""];
      if (Object.hasOwn(QUANTITIES, name)) within = name;
    },
    close(name, text) {
      if (!values) return;
      if (name === "time" || name === "Time") time = text;
      else if (name === "Value" && within === "HeartRateBpm") values.push(["HeartRateBpm", text]);
      else if (Object.hasOwn(QUANTITIES, name) && text !== "") values.push([name, text]);
      else if (name === "trkpt" || name === "Trackpoint") {
        const at = readTime(time, "month", zone);
        if (at) for (const [key, value] of values) found.add(...QUANTITIES[key]!, at.wall, Number(value));
        values = null;
      }
    },
  };
}
