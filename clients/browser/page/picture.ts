/** Pictures, drawn on the person's device. */

import { svg } from "./dom.ts";
import { short } from "./language.ts";
import type { Units } from "./reading.ts";

const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [340, 164, 44, 24, 24];

/** One line of a picture: points and values, and the class it is drawn with. */
export type Line = { points: number[]; values: number[]; kind: "line" | "noisy" | "second" };

/** A hundred dots, so many of them full. */
export function hundred(picture: Element, full: number): void {
  picture.replaceChildren(...Array.from({ length: 100 }, (_, k) =>
    svg("circle", { cx: 6 + 12 * (k % 20), cy: 6 + 12 * Math.floor(k / 20), r: 4.4, class: k < full ? "full" : "empty" })));
}

const least = (numbers: number[]): number => numbers.reduce((a, b) => Math.min(a, b));
const most = (numbers: number[]): number => numbers.reduce((a, b) => Math.max(a, b));

/** Curves in one frame, with the ends of both axes and their units written beside it. */
export function curves(picture: Element, lines: Line[], units: Units): void {
  const seen = lines.map(({ points, values, kind }) => ({
    kind, places: values.map((x, k) => [points[k]!, x] as const).filter(([t, x]) => Number.isFinite(t) && Number.isFinite(x)),
  }));
  const all = seen.flatMap(({ places }) => places);
  if (all.length === 0) return picture.replaceChildren();
  const [ts, xs] = [all.map(([t]) => t), all.map(([, x]) => x)];
  const across = scale(ts, LEFT + 4, WIDTH - 6);
  const down = scale(xs, HEIGHT - BOTTOM - 4, TOP);
  const marks = [
    svg("line", { class: "axis", x1: LEFT, y1: HEIGHT - BOTTOM, x2: WIDTH, y2: HEIGHT - BOTTOM }),
    svg("line", { class: "axis", x1: LEFT, y1: TOP - 6, x2: LEFT, y2: HEIGHT - BOTTOM }),
    svg("text", { x: LEFT - 4, y: TOP + 6, "text-anchor": "end" }, short(most(xs))),
    svg("text", { x: LEFT - 4, y: HEIGHT - BOTTOM - 2, "text-anchor": "end" }, short(least(xs))),
    svg("text", { x: LEFT, y: HEIGHT - 6 }, `t = ${short(least(ts))}`),
    svg("text", { x: WIDTH - 6, y: HEIGHT - 6, "text-anchor": "end" }, `${short(most(ts))} ${units.t}`.trim()),
    svg("text", { x: LEFT + 2, y: 12 }, units.x),
  ];
  for (const { kind, places } of seen) {
    if (places.length > 1) {
      marks.push(svg("polyline", { class: kind, points: places.map(([t, x]) => `${across(t)},${down(x)}`).join(" ") }));
    } else {
      for (const [t, x] of places) marks.push(svg("circle", { class: "dot", r: 3, cx: across(t), cy: down(x) }));
    }
  }
  picture.replaceChildren(...marks);
}

function scale(numbers: number[], from: number, to: number): (value: number) => string {
  const [low, high] = [least(numbers), most(numbers)];
  return (value) => (high > low ? from + ((to - from) * (value - low)) / (high - low) : (from + to) / 2).toFixed(1);
}
