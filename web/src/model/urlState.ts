/** Filters, sort order and open rows live in the address, so that a view can be sent to somebody. */

import { useCallback, useMemo } from 'react';
import { useLocation, useSearch } from 'wouter';

/** Values of the query, and how to change some of them; empty ones leave the address. */
export function useUrlState(): [
  URLSearchParams,
  (changes: Record<string, string | undefined>, push?: boolean) => void,
] {
  const search = useSearch();
  const [, navigate] = useLocation();
  const parameters = useMemo(() => new URLSearchParams(search), [search]);
  const change = useCallback(
    (changes: Record<string, string | undefined>, push = false) => {
      const next = new URLSearchParams(window.location.search);
      for (const [name, value] of Object.entries(changes)) {
        if (value === undefined || value === '') next.delete(name);
        else next.set(name, value);
      }
      const text = next.toString();
      navigate(window.location.pathname + (text === '' ? '' : `?${text}`), { replace: !push });
    },
    [navigate],
  );
  return [parameters, change];
}

/** `name` or `-name`: a column, downwards with the sign. */
export interface Sort {
  by: string;
  down: boolean;
}

export const parseSort = (text: string | null): Sort | undefined =>
  text === null || text === '' ? undefined : { by: text.replace(/^-/, ''), down: text.startsWith('-') };

/** The same object as long as it says the same. */
export function useSort(url: URLSearchParams): Sort | undefined {
  const text = url.get('sort');
  return useMemo(() => parseSort(text), [text]);
}

export const printSort = (sort: Sort): string => (sort.down ? `-${sort.by}` : sort.by);

/** A click on a head: numbers largest first, names from A; again: the other way; a third time: as it was. */
export function nextSort(current: Sort | undefined, by: string, numeric: boolean): Sort | undefined {
  if (current?.by !== by) return { by, down: numeric };
  return current.down === numeric ? { by, down: !numeric } : undefined;
}
