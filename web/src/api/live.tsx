/**
 * How pages stay live.
 *
 * A page asks with [`useLive`] and is told when to ask again by a [`Pulse`]. Today the pulse is a clock that
 * stands still while the page is hidden. A stream of events of the server can take its place without a change
 * in any page: it has to implement `subscribe`.
 */

import { keepPreviousData, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';

export interface Pulse {
  /** Calls the listener whenever something may have changed; returns how to stop it. */
  subscribe(listener: () => void): () => void;
}

/** A pulse by the clock. Hidden pages do not ask; one that comes back asks at once. */
export function clockPulse(periodMs: number, page: Document = document): Pulse {
  return {
    subscribe(listener) {
      const tick = () => {
        if (page.visibilityState === 'visible') listener();
      };
      const timer = setInterval(tick, periodMs);
      page.addEventListener('visibilitychange', tick);
      return () => {
        clearInterval(timer);
        page.removeEventListener('visibilitychange', tick);
      };
    },
  };
}

interface Live {
  /** Does the page ask by itself? */
  on: boolean;
  setOn: (on: boolean) => void;
  /** Asks now, on or off. */
  refresh: () => void;
}

const LiveContext = createContext<Live>({ on: false, setOn: () => undefined, refresh: () => undefined });

/** All live questions have keys that begin so. */
const LIVE = 'live';
const PERIOD_MS = 2_000;

export function LiveProvider({ children, pulse }: { children: ReactNode; pulse?: Pulse }) {
  const client = useQueryClient();
  const [on, setOn] = useState(true);
  const source = useMemo(() => pulse ?? clockPulse(PERIOD_MS), [pulse]);

  const live = useMemo<Live>(
    () => ({ on, setOn, refresh: () => void client.invalidateQueries({ queryKey: [LIVE] }) }),
    [on, client],
  );
  useEffect(() => {
    if (!on) return undefined;
    // A slow answer is waited for: asking on top of it would only make it slower.
    return source.subscribe(
      () => void client.invalidateQueries({ queryKey: [LIVE] }, { cancelRefetch: false }),
    );
  }, [on, source, client]);
  return <LiveContext value={live}>{children}</LiveContext>;
}

export const useLiveControl = (): Live => useContext(LiveContext);

/** The newest answer to a question; the one before it is shown until it comes. */
export function useLive<T>(key: unknown[], ask: () => Promise<T>, enabled = true): UseQueryResult<T> {
  return useQuery({ queryKey: [LIVE, ...key], queryFn: ask, placeholderData: keepPreviousData, enabled });
}

/** An answer that does not change by itself. */
export function useOnce<T>(key: unknown[], ask: () => Promise<T>, enabled = true): UseQueryResult<T> {
  return useQuery({ queryKey: ['once', ...key], queryFn: ask, staleTime: Infinity, enabled });
}
