/** What is derived from operations and jobs, for lists and pages. */

import type { JobCounts, OperationSummary } from '../api/operations';

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

/** How long each state lasted; states that took no time are left out. */
export function phasesOf(
  events: { time: string; state: string }[],
  now: number,
  end?: string,
): { state: string; ms: number }[] {
  return events
    .map((event, index) => {
      const next = events[index + 1]?.time ?? end;
      const until = next === undefined ? now : Date.parse(next);
      return { state: event.state, ms: Math.max(0, until - Date.parse(event.time)) };
    })
    .filter(phase => phase.ms > 0 && !isFinished(phase.state));
}
