/** What was: figures over time that the server keeps in memory (docs/api.md). */

import { escapePath, get, question } from './client';
import { Refusal, UNREACHABLE } from './errors';

export type Series = (number | null)[];

/** Means over steps; nothing where nothing is known. */
export interface History<Column extends string> {
  start: string;
  /** Milliseconds between points. */
  step: number;
  count: number;
  columns: Record<Column, Series>;
}

export type PoolHistory = History<
  | 'demand'
  | 'usage'
  | 'fair_share'
  | 'strong_guarantee'
  | 'integral_guarantee'
  | 'weight_proportional'
  | 'accumulated_resource_ratio_volume'
>;

/** Means over `step`, from so long ago (`-15m`) until now. */
export const poolHistory = (tree: string, name: string, start: string, step: string): Promise<PoolHistory> =>
  get(
    `//sys/scheduler/orchid/scheduler/pool_trees/${escapePath(tree)}/pool_history/${escapePath(name)}/${start}/now/${step}`,
  );

/** CPU in cores, memory in bytes. */
export type JobHistory = History<
  'cpu_usage' | 'cpu_smoothed' | 'cpu_guarantee' | 'memory_usage' | 'memory_peak' | 'memory_reserve'
>;

/** A job from its start to its end, or to now; nothing if the server knows nothing (any more). */
export const jobHistory = (job: string, start: string, end: string | undefined): Promise<JobHistory | null> =>
  orNull(question<JobHistory>('job_history', { job_id: job, start, ...(end === undefined ? {} : { end }) }));

export type NodeHistory = History<
  'cpu_usage' | 'cpu_limit' | 'memory_usage' | 'memory_limit' | 'user_slots_usage' | 'gpu_usage' | 'gpu_limit'
>;

export const nodeHistory = (address: string, start: string, step: string): Promise<NodeHistory | null> =>
  orNull(question<NodeHistory>('node_history', { address, start, step }));

/** Nothing instead of a refusal; that the server is away is thrown still. */
export async function orNull<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Refusal && error.tree.code !== UNREACHABLE) return null;
    throw error;
  }
}
