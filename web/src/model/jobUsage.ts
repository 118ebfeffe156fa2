/** What a job of a list uses, out of the few figures that lists have (`brief_statistics`). */

import type { Job } from '../api/operations';

/** CPU in cores, memory in bytes. */
export interface Used {
  used: number;
  /** The most so far; as much as is used where no peak is known. */
  peak: number;
  /** What is guaranteed or reserved now. */
  promised: number | undefined;
  limit: number;
}

const figure = (job: Job, path: string): number | undefined => {
  const value = job.brief_statistics?.[path];
  return typeof value === 'number' ? value : undefined;
};

/** Smoothed as the CPU monitor has it; of ended jobs the mean. */
export function cpuOf(job: Job): Used | undefined {
  const millicores = figure(job, 'user_job/cpu_reserve_millicores');
  if (millicores === undefined) return undefined;
  const limit = millicores / 1_000;
  const smoothed = figure(job, 'job_proxy/smoothed_cpu_usage_x100');
  const mean = meanCpu(job);
  const used = job.finish_time === undefined && smoothed !== undefined ? smoothed / 100 : mean;
  if (used === undefined) return undefined;
  const spare = figure(job, 'job_proxy/preemptible_cpu_x100');
  return { used, peak: used, promised: spare === undefined ? undefined : limit - spare / 100, limit };
}

function meanCpu(job: Job): number | undefined {
  const [user, system, exec] = ['user_job/cpu/user', 'user_job/cpu/system', 'time/exec'].map(path =>
    figure(job, path),
  );
  return user === undefined || system === undefined || !exec ? undefined : (user + system) / exec;
}

/** In use while the job runs, the peak afterwards. */
export function memoryOf(job: Job): Used | undefined {
  const limit = figure(job, 'user_job/memory_limit');
  const peak = figure(job, 'user_job/max_memory');
  if (limit === undefined || peak === undefined) return undefined;
  const now = job.finish_time === undefined ? figure(job, 'user_job/current_memory/rss') : undefined;
  return { used: now ?? peak, peak, promised: figure(job, 'user_job/memory_reserve'), limit };
}
