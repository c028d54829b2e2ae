/** Reading files of measurements for a study: `@dpfda/client/files`. */

export { dayCurve, seriesOf } from "./curve.ts";
export { daysOf, fullestDay, hoursOf, named, type Choice, type Series } from "./series.ts";
export { column, numberOf, readTable, timeColumns, times, valueColumns, type Table } from "./table.ts";
export { Zone, type Moment } from "./times.ts";
export { readFile, type Recording } from "./read.ts";
export { Unreadable } from "./unreadable.ts";
