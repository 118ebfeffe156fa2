/** A function that stays the same object and calls the newest one: what it is given to need not be drawn anew. */

import { useCallback, useLayoutEffect, useRef } from 'react';

export function useEvent<A extends unknown[]>(act: (...of: A) => void): (...of: A) => void {
  const newest = useRef(act);
  useLayoutEffect(() => {
    newest.current = act;
  });
  return useCallback((...of: A) => newest.current(...of), []);
}
