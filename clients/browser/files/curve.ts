/** From a recording to the curve of a day, without anybody choosing columns. */

import type { Recording } from "./read.ts";
import { fullestDay, hoursOf, inOrder, named, type Choice, type Series } from "./series.ts";
import { column, timeColumns, times, valueColumns } from "./table.ts";
import { Unreadable } from "./unreadable.ts";

/** The series of a recording: of a table, its columns of measurements beside its times. */
export function seriesOf({ table, series, zone }: Recording): Series[] {
  if (!table) return series;
  const [clock] = timeColumns(table);
  const moments = clock === undefined ? null : times(table, clock, zone);
  if (!moments) throw new Unreadable("file.nothing");
  const wall = moments.map((moment) => moment.wall);
  return valueColumns(table).map((place) => inOrder({ name: table.names[place]!, unit: "", times: wall, values: column(table, place), dated: moments[0]!.dated }));
}

/**
 * Hours since midnight and values of one day, or of the average day.
 *
 * @param wanted words for the quantity, as "heart rate"; needed where the file holds several.
 * @param day by default the day with the most measurements.
 */
export function dayCurve(recording: Recording, { wanted = "", day }: { wanted?: string; day?: Choice } = {}): { name: string; day: Choice; hours: number[]; values: number[] } {
  const series = seriesOf(recording);
  const place = named(series.map(({ name }) => name), wanted);
  const one = place === null ? undefined : series[place];
  if (!one) throw new Unreadable("file.which", { names: { listed: series.map(({ name }) => name), by: "or" } });
  const chosen = one.dated ? (day ?? { day: fullestDay(one) }) : "all";
  return { name: one.name, day: chosen, ...hoursOf(one, chosen) };
}
