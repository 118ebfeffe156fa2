/** A value as lines of text, with maps and lists open or closed. */

import type { Json } from '../api/client';

export interface Line {
  path: string;
  depth: number;
  name: string | undefined;
  kind: 'open' | 'closed' | 'leaf' | 'end';
  type: 'string' | 'number' | 'other' | 'bracket';
  text: string;
  found: boolean;
}

interface View {
  /** Levels that are open unless they were touched. */
  depth: number;
  /** Paths that were touched. */
  toggled: ReadonlySet<string>;
  search: string;
}

type Container = Json[] | { [key: string]: Json };

const isContainer = (value: Json): value is Container => typeof value === 'object' && value !== null;
const entriesOf = (value: Container): [string | undefined, Json][] =>
  Array.isArray(value) ? value.map(item => [undefined, item]) : Object.entries(value);

export function linesOf(value: Json, view: View): Line[] {
  const search = view.search.trim().toLowerCase();
  const lines: Line[] = [];
  const hit = (text: string) => search !== '' && text.toLowerCase().includes(search);
  const hitInside = (inner: Json): boolean =>
    isContainer(inner)
      ? entriesOf(inner).some(([name, item]) => hit(name ?? '') || hitInside(item))
      : hit(scalarText(inner));

  const add = (name: string | undefined, item: Json, path: string, depth: number) => {
    const line = { path, depth, name };
    if (!isContainer(item)) {
      const text = scalarText(item);
      lines.push({ ...line, kind: 'leaf', type: typeOf(item), text, found: hit(name ?? '') || hit(text) });
      return;
    }
    const entries = entriesOf(item);
    const [left, right] = Array.isArray(item) ? ['[', ']'] : ['{', '}'];
    const found = hit(name ?? '');
    if (entries.length === 0) {
      lines.push({ ...line, kind: 'leaf', type: 'bracket', text: left + right, found });
      return;
    }
    const open = depth < view.depth !== view.toggled.has(path) || (search !== '' && hitInside(item));
    if (!open) {
      const size = `${entries.length} ${Array.isArray(item) ? 'item' : 'key'}${entries.length === 1 ? '' : 's'}`;
      lines.push({ ...line, kind: 'closed', type: 'bracket', text: `${left} ${size} ${right}`, found });
      return;
    }
    lines.push({ ...line, kind: 'open', type: 'bracket', text: left, found });
    entries.forEach(([key, inner], index) => add(key, inner, `${path}/${key ?? index}`, depth + 1));
    lines.push({ ...line, name: undefined, kind: 'end', type: 'bracket', text: `  ${right}`, found: false });
  };
  add(undefined, value, '', 0);
  return lines;
}

function scalarText(value: Json): string {
  if (typeof value === 'string') return `"${value}"`;
  if (value === null) return '#';
  if (typeof value === 'boolean') return value ? '%true' : '%false';
  return String(value);
}

function typeOf(value: Json): Line['type'] {
  if (typeof value === 'string') return 'string';
  return typeof value === 'number' ? 'number' : 'other';
}
