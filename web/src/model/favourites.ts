/** Pages that somebody wants to find again, kept in the browser. */

import { useKept } from './kept';

export interface Favourite {
  /** Address of the page. */
  href: string;
  title: string;
  /** What it is, e.g. `pool`. */
  kind: string;
}

const NONE: Favourite[] = [];

/** More than these make no list that anybody reads. */
export const MOST = 30;

const isText = (value: unknown): value is string => typeof value === 'string';

export const areFavourites = (value: unknown): value is Favourite[] =>
  Array.isArray(value) &&
  value.every((one: Partial<Favourite> | null) => isText(one?.href) && isText(one.title) && isText(one.kind));

/** With this page, or without it if it was among them; the newest first. */
export function toggled(all: readonly Favourite[], page: Favourite): Favourite[] {
  const others = all.filter(one => one.href !== page.href);
  return others.length < all.length ? others : [page, ...others].slice(0, MOST);
}

export const useFavourites = (): [Favourite[], (all: Favourite[]) => void] =>
  useKept('favourites', NONE, areFavourites);
