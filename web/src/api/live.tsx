/**
 * How pages stay live: a page asks with [`useLive`] and says what its question is about; when the pulse
 * (`pulse.ts`) says that this may have changed, the question is asked again.
 */

import {
  keepPreviousData,
  useQuery,
  useQueryClient,
  type Query,
  type QueryClient,
  type UseQueryResult,
} from '@tanstack/react-query';
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { streamPulse, touches, type Beat, type Pulse, type Source, type Topic } from './pulse';

interface Live {
  /** Does the page ask by itself? */
  on: boolean;
  /** What tells it to. */
  source: Source;
  setOn: (on: boolean) => void;
  /** Asks now, on or off. */
  refresh: () => void;
}

const LiveContext = createContext<Live>({
  on: false,
  source: 'clock',
  setOn: () => undefined,
  refresh: () => undefined,
});

/** All live questions have keys that begin so. */
const LIVE = 'live';

export function LiveProvider({ children, pulse }: { children: ReactNode; pulse?: Pulse }) {
  const client = useQueryClient();
  const [on, setOn] = useState(true);
  const [source, setSource] = useState<Source>('clock');
  const beats = useMemo(() => pulse ?? streamPulse(), [pulse]);

  const live = useMemo<Live>(
    () => ({ on, source, setOn, refresh: () => void client.invalidateQueries({ queryKey: [LIVE] }) }),
    [on, source, client],
  );
  useEffect(() => (on ? beats.subscribe(asker(client), setSource) : undefined), [on, beats, client]);
  return <LiveContext value={live}>{children}</LiveContext>;
}

/** Asks again what a beat touches. */
function asker(client: QueryClient): (beat: Beat) => void {
  return beat => {
    const predicate = ({ meta }: Query) => topicsOf(meta).some(topic => touches(beat, topic));
    const touched = { queryKey: [LIVE], predicate };
    // The answer on its way may be older than what has happened: it is asked for once more. The clock need not
    // do that, it comes again.
    const late =
      beat === 'everything'
        ? []
        : client
            .getQueryCache()
            .findAll(touched)
            .filter(({ state }) => state.fetchStatus === 'fetching');
    // A slow answer is waited for: asking on top of it would only make it slower.
    void client.invalidateQueries(touched, { cancelRefetch: false }).then(() => {
      for (const { queryKey } of late) void client.invalidateQueries({ queryKey, exact: true });
    });
  };
}

const topicsOf = (meta: Record<string, unknown> | undefined): Topic[] =>
  (meta?.['topics'] as Topic[] | undefined) ?? ['any'];

export const useLiveControl = (): Live => useContext(LiveContext);

/** How a question is asked, where it is not as usual. */
interface Asking<T> {
  enabled?: boolean;
  /** What the new answer has in common with the old one; for answers so large that a general look takes long. */
  share?: (old: unknown, answer: T) => T;
}

/** The newest answer to a question about these topics; the one before it is shown until it comes. */
export function useLive<T>(
  topic: Topic | Topic[],
  key: unknown[],
  ask: () => Promise<T>,
  { enabled = true, share }: Asking<T> = {},
): UseQueryResult<T> {
  return useQuery({
    queryKey: [LIVE, ...key],
    queryFn: ask,
    placeholderData: keepPreviousData,
    enabled,
    meta: { topics: Array.isArray(topic) ? topic : [topic] },
    ...(share === undefined
      ? {}
      : { structuralSharing: (old: unknown, answer: unknown) => share(old, answer as T) }),
  });
}

/** An answer that does not change by itself. */
export function useOnce<T>(key: unknown[], ask: () => Promise<T>, enabled = true): UseQueryResult<T> {
  return useQuery({ queryKey: ['once', ...key], queryFn: ask, staleTime: Infinity, enabled });
}
