/**
 * When pages ask again.
 *
 * A [`Pulse`] says what may have changed. Normally that is the server's stream of events
 * (`/api/millpond/stream`), which says it within a second and costs nothing while nothing happens. Where there
 * is none, or it breaks, the page asks by the clock until the stream is back. Events carry no data: a page asks
 * its own questions, so nobody is told more than they may read.
 */

/** A kind of things that change together; `operation/<id>` is one of them; `any` is touched by every beat. */
export type Topic =
  'pools' | 'operations' | `operation/${string}` | 'nodes' | 'preemptions' | 'alerts' | 'any';

/** What may have changed. */
export type Beat =
  'everything' | { topics: ReadonlySet<string>; operations: ReadonlySet<string> | undefined };

/** Where beats come from at the moment. */
export type Source = 'stream' | 'clock';

export interface Pulse {
  /** Calls the listeners until it is told to stop. */
  subscribe(onBeat: (beat: Beat) => void, onSource: (source: Source) => void): () => void;
}

/** Does what has changed concern a question about this? */
export function touches(beat: Beat, topic: Topic): boolean {
  if (beat === 'everything' || topic === 'any') return true;
  if (!topic.startsWith('operation/')) return beat.topics.has(topic);
  if (!beat.topics.has('operations')) return false;
  return beat.operations === undefined || beat.operations.has(topic.slice('operation/'.length));
}

/** An event of the server; everything, if it cannot be understood. */
export function beatOf(data: string): Beat {
  try {
    const { topics, operations } = JSON.parse(data) as { topics?: string[]; operations?: string[] };
    if (!Array.isArray(topics)) return 'everything';
    return {
      topics: new Set(topics),
      operations: Array.isArray(operations) ? new Set(operations) : undefined,
    };
  } catch {
    return 'everything';
  }
}

/** As much of an `EventSource` as is needed. */
export interface Events {
  addEventListener(name: string, listener: (event: { data?: string }) => void): void;
  close(): void;
}

export interface Periods {
  /** How often to ask without a stream. */
  clock: number;
  /** How often to ask for everything beside the stream: some things age without an event. */
  beside: number;
  /** How long to wait before a stream is tried again: at first, and at most. */
  retry: [number, number];
}

export const PERIODS: Periods = { clock: 2_000, beside: 10_000, retry: [1_000, 30_000] };

/**
 * Beats of the stream, and of the clock while there is no stream. A hidden page has neither: it asks nothing,
 * and browsers allow few connections to one server. One that is seen again asks for everything at once.
 */
export function streamPulse(
  open: () => Events = () => new EventSource('/api/millpond/stream'),
  page: Document = document,
  periods: Periods = PERIODS,
): Pulse {
  return {
    subscribe(onBeat, onSource) {
      let stream: Events | undefined;
      let clock: ReturnType<typeof setInterval> | undefined;
      let retry: ReturnType<typeof setTimeout> | undefined;
      let wait = periods.retry[0];

      const tick = (source: Source) => {
        clearInterval(clock);
        clock = setInterval(() => onBeat('everything'), source === 'stream' ? periods.beside : periods.clock);
        onSource(source);
      };
      const connect = () => {
        const opened = open();
        stream = opened;
        opened.addEventListener('open', () => {
          wait = periods.retry[0];
          tick('stream');
          // What happened while nobody listened is not told again.
          onBeat('everything');
        });
        opened.addEventListener('error', () => {
          // The browser's own retries give up after an answer that is no stream: ours do not.
          opened.close();
          if (stream !== opened) return;
          stream = undefined;
          tick('clock');
          retry = setTimeout(connect, wait);
          wait = Math.min(wait * 2, periods.retry[1]);
        });
        opened.addEventListener('changed', event => onBeat(beatOf(event.data ?? '')));
      };
      const stop = () => {
        stream?.close();
        stream = undefined;
        clearInterval(clock);
        clearTimeout(retry);
      };
      const start = () => {
        stop();
        wait = periods.retry[0];
        tick('clock');
        connect();
      };
      const seen = () => {
        if (page.visibilityState !== 'visible') return stop();
        onBeat('everything');
        start();
      };
      page.addEventListener('visibilitychange', seen);
      if (page.visibilityState === 'visible') start();
      return () => {
        page.removeEventListener('visibilitychange', seen);
        stop();
      };
    },
  };
}
