/** Looking into the tree, and changing it. */

import { call, callWithInput, escapePath, get, listPart, text, type Json } from './client';

export interface Child {
  name: string;
  type: string;
  count?: number;
  modified?: string;
}

type Listed =
  string | { $value: string; $attributes?: { type?: string; count?: number; modification_time?: string } };

/** Children that are shown: nobody looks through more of them. */
export const CHILDREN_SHOWN = 10_000;

/** The first children, and whether there are more. */
export async function children(path: string): Promise<{ shown: Child[]; incomplete: boolean }> {
  const { names, incomplete } = await listPart<Listed>(path, {
    attributes: ['type', 'count', 'modification_time'],
    max_size: CHILDREN_SHOWN,
  });
  const shown = names.map(item => {
    if (typeof item === 'string') return { name: item, type: '' };
    const { type, count, modification_time } = item.$attributes ?? {};
    return {
      name: item.$value,
      type: type ?? '',
      ...(count === undefined ? {} : { count }),
      ...(modification_time === undefined ? {} : { modified: modification_time }),
    };
  });
  return { shown, incomplete };
}

export const attributes = (path: string): Promise<Record<string, Json>> => get(`${path}/@`);
export const typeOf = (path: string): Promise<string> => get(`${path}/@type`);
export const value = (path: string): Promise<Json> => get(path, { max_size: 1_000 });

/** Rows of a table that are shown: to see what is in it, not to work with. */
export const ROWS_SHOWN = 500;

export interface TableStart {
  /** Of the whole table. */
  rowCount: number;
  rows: Record<string, Json>[];
}

/** The first rows of a table. */
export async function tableStart(path: string): Promise<TableStart> {
  const [rowCount, lines] = await Promise.all([
    get<number>(`${path}/@row_count`),
    text('read_table', { path: `${path}[#0:#${ROWS_SHOWN}]` }),
  ]);
  const rows = lines.split('\n').filter(line => line !== '');
  return { rowCount, rows: rows.map(line => JSON.parse(line) as Record<string, Json>) };
}

/** What a browser saves. */
export const fileAddress = (path: string): string => `/api/v4/read_file?${new URLSearchParams({ path })}`;

export const child = (path: string, name: string): string =>
  `${path === '/' ? '/' : path}/${escapePath(name)}`;

export const setValue = (path: string, to: Json): Promise<void> => callWithInput('set', { path }, to);
export const setAttribute = (path: string, name: string, to: Json): Promise<void> =>
  callWithInput('set', { path: `${path}/@${escapePath(name)}` }, to);
export const removeAttribute = (path: string, name: string): Promise<unknown> =>
  call('remove', { path: `${path}/@${escapePath(name)}` });
export const create = (type: string, path: string): Promise<unknown> => call('create', { type, path });
export const remove = (path: string): Promise<unknown> => call('remove', { path, recursive: true });
