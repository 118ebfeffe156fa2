/** Light, dark, or what the system says; kept in the browser. */

import { useCallback, useState } from 'react';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'millpond.theme';
const THEMES: Theme[] = ['system', 'light', 'dark'];

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(() => {
    const kept = window.localStorage.getItem(KEY) as Theme | null;
    return kept !== null && THEMES.includes(kept) ? kept : 'system';
  });
  const change = useCallback((next: Theme) => {
    window.localStorage.setItem(KEY, next);
    setTheme(next);
  }, []);
  return [theme, change];
}
