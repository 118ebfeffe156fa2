/** What the browser keeps for its user: readable by every part of the page, and changed for all of them at once. */

import { useCallback, useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();

/** Texts as they are kept with what they said, so that the same text is the same value. */
const read = new Map<string, { text: string; value: unknown }>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // Another window of the same browser.
  window.addEventListener('storage', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', listener);
  };
}

function keptAt<T>(key: string, otherwise: T, is: (value: unknown) => value is T): T {
  const text = window.localStorage.getItem(key);
  if (text === null) return otherwise;
  const known = read.get(key);
  if (known?.text === text) return known.value as T;
  const value = parsed(text, is) ?? otherwise;
  read.set(key, { text, value });
  return value;
}

/** Nothing of what is no value of this kind: other versions of the page may have kept it. */
function parsed<T>(text: string, is: (value: unknown) => value is T): T | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return is(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A value that is kept under this name, and how to change it. `otherwise` must be the same object each time. */
export function useKept<T>(
  name: string,
  otherwise: T,
  is: (value: unknown) => value is T,
): [T, (value: T) => void] {
  const key = `millpond.${name}`;
  const value = useSyncExternalStore(subscribe, () => keptAt(key, otherwise, is));
  const change = useCallback(
    (next: T) => {
      window.localStorage.setItem(key, JSON.stringify(next));
      for (const listener of listeners) listener();
    },
    [key],
  );
  return [value, change];
}
