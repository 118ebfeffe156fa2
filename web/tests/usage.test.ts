/** What jobs use: statistics, rows of lists, pictures of digests. */

import { describe, expect, test } from 'vitest';
import type { Job, JobDetails, MemoryDigest } from '../src/api/operations';
import { barsOf } from '../src/model/digest';
import { cpuOf, memoryOf } from '../src/model/jobUsage';
import { statistic } from '../src/model/statistics';

const leaf = (value: number) => ({ sum: value, count: 1, min: value, max: value, last: value });

/** A job that has run so long with so much processor time, in milliseconds. */
const job = (exec: number, cpu: number): JobDetails => ({
  id: 'j',
  type: 'vanilla',
  state: 'running',
  statistics: {
    time: { exec: leaf(exec) },
    user_job: {
      cpu: { user: leaf(cpu), system: leaf(0) },
      cpu_reserve_millicores: leaf(2_000),
      max_memory: leaf(90),
      memory_reserve: leaf(50),
      memory_limit: leaf(100),
      current_memory: { rss: leaf(70) },
    },
    job_proxy: { cpu: { user: leaf(0), system: leaf(0) }, smoothed_cpu_usage_x100: leaf(140) },
  },
});

test('statistics by path', () => {
  const { statistics } = job(5_000, 4_000);
  expect(statistic(statistics, 'user_job/cpu/user')).toBe(4_000);
  expect(statistic(statistics, 'user_job/cpu')).toBeUndefined();
  expect(statistic(statistics, 'user_job/nothing/at/all')).toBeUndefined();
  expect(statistic(undefined, 'time/exec')).toBeUndefined();
});

describe('a row of the list of jobs', () => {
  const row = (brief: Record<string, number>, ended = false): Job => ({
    id: 'j',
    type: 'vanilla',
    state: ended ? 'completed' : 'running',
    brief_statistics: brief,
    ...(ended ? { finish_time: '2026-01-01T00:00:00Z' } : {}),
  });
  const brief = {
    'time/exec': 10_000,
    'user_job/cpu/user': 4_000,
    'user_job/cpu/system': 1_000,
    'user_job/cpu_reserve_millicores': 2_000,
    'job_proxy/smoothed_cpu_usage_x100': 120,
    'job_proxy/preemptible_cpu_x100': 50,
    'user_job/memory_limit': 100,
    'user_job/memory_reserve': 60,
    'user_job/max_memory': 90,
    'user_job/current_memory/rss': 70,
  };
  test('of a running job: now', () => {
    expect(cpuOf(row(brief))).toEqual({ used: 1.2, peak: 1.2, promised: 1.5, limit: 2 });
    expect(memoryOf(row(brief))).toEqual({ used: 70, peak: 90, promised: 60, limit: 100 });
  });
  test('of an ended one: the mean, and the peak', () => {
    expect(cpuOf(row(brief, true))?.used).toBe(0.5);
    expect(memoryOf(row(brief, true))?.used).toBe(90);
  });
  test('of one that nobody has measured: nothing', () => {
    expect(cpuOf(row({}))).toBeUndefined();
    expect(memoryOf({ id: 'j', type: 'vanilla', state: 'waiting' })).toBeUndefined();
    expect(cpuOf(row({ 'user_job/cpu_reserve_millicores': 1_000 }))).toBeUndefined();
  });
});

describe('the picture of a digest', () => {
  const digest = (lower: number, upper: number, histogram: MemoryDigest['histogram']): MemoryDigest => ({
    samples: 3,
    quantile: 0.95,
    value: 0.5,
    lower_bound: lower,
    default_value: 0.5,
    upper_bound: upper,
    ...(histogram === undefined ? {} : { histogram }),
  });
  test('has a logarithmic axis', () => {
    const { bars, place } = barsOf(
      digest(0.01, 1, [
        { lower: 0.01, upper: 0.1, count: 1 },
        { lower: 0.1, upper: 1, count: 2 },
      ]),
    );
    expect(bars.map(({ from, to, height }) => [from, to, height])).toEqual([
      [0, 0.5, 0.5],
      [0.5, 1, 1],
    ]);
    expect([place(0.001), place(0.1), place(7)]).toEqual([0, 0.5, 1]);
  });
  test('with one place only, and without bars', () => {
    const one = barsOf(digest(1, 1, [{ lower: 1, upper: 1, count: 5 }]));
    expect(one.bars.map(({ from, to, height }) => [from, to, height])).toEqual([[0, 1, 1]]);
    expect(barsOf(digest(0.05, 1, undefined)).bars).toEqual([]);
  });
});
