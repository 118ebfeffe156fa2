/** What is derived from operations and jobs, for lists and pages. */

import type { Json } from '../api/client';
import type { ErrorTree } from '../api/errors';
import type { Counts, DetailedCounts, JobCounts, Operation, OperationSummary } from '../api/operations';
import { firstPath, pathCount } from './specSummary';

const FINISHED = new Set(['completed', 'failed', 'aborted']);

export const isFinished = (state: string): boolean => FINISHED.has(state);
export const isEnding = (state: string): boolean =>
  isFinished(state) || ['completing', 'failing', 'aborting'].includes(state);

/** States in the order of a life; others come behind. */
export const STATES = ['pending', 'running', 'completed', 'failed', 'aborted'];

export const titleOf = (operation: OperationSummary): string =>
  operation.brief_spec?.title ?? commandOf(operation) ?? operation.type;

/** The command of the first task. */
export function commandOf(operation: OperationSummary): string | undefined {
  return Object.values(operation.brief_spec?.tasks ?? {})[0]?.command;
}

/** Its tables in short, ` · //input and 2 more → //output`; nothing without any. */
export function tablesOf(operation: OperationSummary): string {
  const [from, to] = [operation.brief_spec?.input_table_paths, operation.brief_spec?.output_table_paths];
  const short = (paths: Json | undefined) => {
    const first = firstPath(paths);
    const more = pathCount(paths) - 1;
    return first === undefined ? '' : more > 0 ? `${first} and ${more} more` : first;
  };
  const [input, output] = [short(from), short(to)];
  return input === '' && output === '' ? '' : ` · ${input} → ${output}`;
}

export interface Place {
  tree: string;
  pool: string;
  weight: number | undefined;
}

/** Where it stands in each tree. */
export const placesOf = (operation: OperationSummary): Place[] =>
  Object.entries(operation.runtime_parameters?.scheduling_options_per_pool_tree ?? {}).map(
    ([tree, options]) => ({
      tree,
      pool: options.pool ?? '',
      weight: options.weight,
    }),
  );

/** Running, but nothing of it runs: it waits for resources. */
export function waitsForResources(operation: OperationSummary): boolean {
  const jobs = operation.brief_progress?.jobs;
  return (
    operation.state === 'running' &&
    !operation.suspended &&
    jobs !== undefined &&
    jobs.running === 0 &&
    jobs.pending > 0
  );
}

/** Parts of the jobs that must complete. */
export function progressOf(jobs: JobCounts | undefined): { completed: number; running: number } {
  if (jobs === undefined || jobs.total === 0) return { completed: 0, running: 0 };
  return { completed: jobs.completed / jobs.total, running: jobs.running / jobs.total };
}

/** One microsecond earlier: the next page begins behind the last row of this one. */
export function justBefore(iso: string): string {
  const match = /^(.*)\.(\d{6})Z$/.exec(iso);
  if (match === null) return iso;
  const micros = Number(match[2]);
  if (micros > 0) return `${match[1]}.${String(micros - 1).padStart(6, '0')}Z`;
  const second = new Date(Date.parse(`${match[1]}Z`) - 1_000).toISOString().slice(0, 19);
  return `${second}.999999Z`;
}

/** Where the page of older operations begins, and that of newer ones ends. */
export interface Cursors {
  older: string;
  newer: string;
}

/**
 * Cursors behind and before a page. The list is cut by time alone: where the last rows began in the same moment,
 * as those of one batch do, more of them may follow, so the next page begins with that moment again. A page of
 * one moment only is passed as a whole.
 */
export function cursorsOf(page: readonly { start_time: string }[]): Cursors | undefined {
  const times = page.map(({ start_time }) => start_time);
  const [first, last] = [times.at(0), times.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const several = first !== last;
  return {
    older: several && times.at(-2) === last ? last : justBefore(last),
    newer: several && times.at(1) === first ? justBefore(first) : first,
  };
}

/** How long each state lasted; states that took no time are left out. */
export function phasesOf(
  events: { time: string; state: string }[],
  now: number,
  end?: string,
): { state: string; at: string; ms: number }[] {
  return events
    .map((event, index) => {
      const next = events[index + 1]?.time ?? end;
      const until = next === undefined ? now : Date.parse(next);
      return { state: event.state, at: event.time, ms: Math.max(0, until - Date.parse(event.time)) };
    })
    .filter(phase => phase.ms > 0 && !isFinished(phase.state));
}

export interface Ends {
  kind: 'aborted' | 'not started' | 'interrupted';
  total: number;
  /** The most frequent first. */
  reasons: [string, number][];
}

/** Jobs that ended before they were done, by what became of them and why; kinds without any are left out. */
export function endsOf(counts: DetailedCounts): Ends[] {
  const kinds: [Ends['kind'], Counts][] = [
    ['aborted', counts.aborted.scheduled],
    ['not started', counts.aborted.non_scheduled],
    ['interrupted', counts.completed.interrupted],
  ];
  return kinds
    .map(([kind, of]) => {
      const reasons = Object.entries(of)
        .filter(([name, n]) => name !== 'total' && n > 0)
        .sort((a, b) => b[1] - a[1]);
      return { kind, reasons, total: reasons.reduce((sum, [, n]) => sum + n, 0) };
    })
    .filter(({ total }) => total > 0);
}

export interface Alert {
  name: string;
  /** When it came, as far as that is known. */
  since: string | undefined;
  error: ErrorTree;
}

/** An alert that has gone, as far as the events that are kept tell. */
export interface PastAlert {
  name: string;
  /** When it came; not known if only its end is kept. */
  from: string | undefined;
  to: string;
  error: ErrorTree;
}

/**
 * Alerts that there are, each with the time when it came, and those that have gone, oldest end first. An event
 * with code 0 is an end.
 */
export function alertsOf(operation: Pick<Operation, 'alerts' | 'alert_events'>): {
  now: Alert[];
  before: PastAlert[];
} {
  const began = new Map<string, { time: string; error: ErrorTree }>();
  const before: PastAlert[] = [];
  for (const { time, alert_type: name, error } of operation.alert_events ?? []) {
    if (error.code !== 0) {
      began.set(name, { time, error });
      continue;
    }
    const start = began.get(name);
    before.push({ name, from: start?.time, to: time, error: start?.error ?? error });
    began.delete(name);
  }
  const alerts = Object.entries(operation.alerts ?? {});
  const now = alerts.map(([name, error]) => ({ name, since: began.get(name)?.time, error }));
  return { now, before };
}
