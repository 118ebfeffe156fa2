/** Names of a list that answers of the server change: none of them moves while the list is open. */

import { useState } from 'react';
import { namesOffered } from '../model/choices';

/** The names to show, and what is to be called when the list opens or closes. */
export function useSteadyNames(names: string[]): [string[], (open: boolean) => void] {
  const [first, setFirst] = useState<string[] | undefined>();
  const shown = first === undefined ? names : namesOffered(first, names, []);
  return [shown, open => setFirst(open ? names : undefined)];
}
