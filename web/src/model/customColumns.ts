/** Columns of one's own choice: any of those of the other sets, in any order, kept in the browser. */

import { columnsToChoose, customSet, type ColumnSet } from './columns';
import { useKept } from './kept';
import { useUrlState } from './urlState';

export const CUSTOM = 'custom';

const AT_FIRST = ['bar', 'weight', 'fair', 'usage', 'demand', 'operations'];

const areNames = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(one => typeof one === 'string');

/** Names that are columns, each once. */
export function known(names: readonly string[]): string[] {
  const all = new Set(columnsToChoose().map(column => column.id));
  return [...new Set(names)].filter(name => all.has(name));
}

let newest: { text: string; set: ColumnSet } | undefined;

/** The same object for the same columns: tables would be drawn anew otherwise. */
function setOf(names: readonly string[]): ColumnSet {
  const text = names.join();
  if (newest?.text !== text) newest = { text, set: customSet(CUSTOM, names) };
  return newest.set;
}

/** The set with these columns: those of the address, so that a link shows what it was made from, else the kept ones. */
export function useCustomColumns(): [ColumnSet, (names: string[]) => void] {
  const [url, change] = useUrlState();
  const [kept, keep] = useKept('columns', AT_FIRST, areNames);
  const asked = url.get('columns');
  const names = known(asked === null ? kept : asked.split(','));
  const choose = (chosen: string[]) => {
    keep(chosen);
    change({ columns: chosen.join(',') });
  };
  return [setOf(names), choose];
}
