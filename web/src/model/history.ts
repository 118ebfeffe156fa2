/** Histories as lines of charts. */

import type { History, Series } from '../api/history';

/** How far back, and the step that gives a readable number of points. */
export const RANGES = [
  { id: '5m', title: '5 min', start: '-5m', step: '1s' },
  { id: '30m', title: '30 min', start: '-30m', step: '5s' },
  { id: '3h', title: '3 h', start: '-3h', step: '30s' },
  { id: '1d', title: '1 day', start: '-24h', step: '3m' },
  { id: '7d', title: '7 days', start: '-168h', step: '15m' },
] as const;

export type Range = (typeof RANGES)[number];

export const rangeOf = (id: string | null): Range => RANGES.find(range => range.id === id) ?? RANGES[0];

/** Seconds since 1970 of every point. */
export function timesOf(history: History<string>): number[] {
  const start = Date.parse(history.start) / 1_000;
  return Array.from({ length: history.count }, (_, index) => start + (index * history.step) / 1_000);
}

/** The server forgets jobs this long after their end (docs/api.md). */
const KEPT_MS = 3 * 3_600_000;

/** Is there still a history of what ended then? Nothing: it has not ended. */
export const isKept = (end: string | undefined, now: number): boolean =>
  end === undefined || now - Date.parse(end) < KEPT_MS;

/** In other units; what is not known stays unknown. */
export const scaled = (series: Series, to: (value: number) => number): Series =>
  series.map(value => (value === null ? null : to(value)));

/** The same at every point: a line across. */
export const constant = (history: History<string>, value: number | undefined): Series =>
  Array.from({ length: history.count }, () => value ?? null);

/** Sum of two series; unknown where either is. */
export const sum = (a: (number | null)[], b: (number | null)[]): (number | null)[] =>
  a.map((value, index) => {
    const other = b[index];
    return value === null || other === null || other === undefined ? null : value + other;
  });
