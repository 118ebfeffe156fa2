/**
 * What a job used, written down while its page is open: the server tells what is the case now, and a line over
 * time needs what was before. Bounded, and forgotten with the page.
 */

import type { JobDetails, JobExplanation, JobStatistics, Summary } from '../api/operations';

/** One look at a job. CPU in cores, memory in bytes. */
export interface Moment {
  /** Milliseconds since 1970. */
  time: number;
  /** Since the moment before. */
  usage: number | null;
  smoothed: number | null;
  /** What the CPU monitor guarantees now. */
  limit: number | null;
  hardLimit: number | null;
  memory: number | null;
  peak: number | null;
  reserve: number | null;
  memoryLimit: number | null;
}

export interface Recording {
  moments: Moment[];
  /** Counters of the newest moment: processor time and running time, in milliseconds. */
  cpuTime: number | undefined;
  execTime: number | undefined;
}

export const EMPTY: Recording = { moments: [], cpuTime: undefined, execTime: undefined };

/** Above this, every other one of the older half is given up. */
const MOST = 720;

/** The statistic at a path like `user_job/cpu/user`. */
export function statistic(statistics: JobStatistics | undefined, path: string): number | undefined {
  let at: JobStatistics | Summary | undefined = statistics;
  for (const name of path.split('/')) {
    at = (at as JobStatistics | undefined)?.[name];
  }
  const summary = at as Summary | undefined;
  return typeof summary?.sum === 'number' ? (summary.last ?? summary.sum) : undefined;
}

/** With one more look; the same recording if the node has reported nothing new since. */
export function recorded(
  before: Recording,
  time: number,
  job: JobDetails,
  why: JobExplanation | null,
): Recording {
  const of = (path: string) => statistic(job.statistics, path);
  const execTime = of('time/exec');
  if (execTime === undefined || execTime === before.execTime) return before;
  const cpuTime =
    (of('user_job/cpu/user') ?? 0) +
    (of('user_job/cpu/system') ?? 0) +
    (of('job_proxy/cpu/user') ?? 0) +
    (of('job_proxy/cpu/system') ?? 0);
  const passed = execTime - (before.execTime ?? execTime);
  const millicores = of('user_job/cpu_reserve_millicores');
  const smoothed = of('job_proxy/smoothed_cpu_usage_x100');
  const moment: Moment = {
    time,
    usage: passed > 0 ? Math.max(0, cpuTime - (before.cpuTime ?? cpuTime)) / passed : null,
    smoothed: why?.cpu.monitor?.smoothed ?? (smoothed === undefined ? null : smoothed / 100),
    limit: why?.cpu.monitor?.limit ?? null,
    hardLimit: why?.cpu.hard_limit ?? (millicores === undefined ? null : millicores / 1_000),
    memory: of('user_job/current_memory/rss') ?? null,
    peak: of('user_job/max_memory') ?? null,
    reserve: why?.memory.user_job.reserve ?? of('user_job/memory_reserve') ?? null,
    memoryLimit: why?.memory.memory_limit ?? of('user_job/memory_limit') ?? null,
  };
  return { moments: thinned([...before.moments, moment]), cpuTime, execTime };
}

/** The newer half as it is; of the older one every other moment once there are too many. */
function thinned(moments: Moment[]): Moment[] {
  if (moments.length <= MOST) return moments;
  const half = moments.length / 2;
  return moments.filter((_, index) => index >= half || index % 2 === 0);
}
