/** Rows of tables as cells. */

import type { Json } from '../api/client';

/** Columns in the order in which they appear. */
export const columnsOf = (rows: readonly Record<string, Json>[]): string[] => [
  ...new Set(rows.flatMap(row => Object.keys(row))),
];

/** Nothing for what a row does not have: `null` is a value. */
export function cellText(value: Json | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
