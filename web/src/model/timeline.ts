/** Jobs as bars over time, one line for each unit of work: its runs one after another. */

import type { Job } from '../api/operations';

export interface Span {
  job: Job;
  /** Parts of the whole time, 0 to 1. */
  from: number;
  to: number;
}

export interface TimelineRow {
  key: string;
  task: string;
  cookie: number | undefined;
  spans: Span[];
}

export interface Timeline {
  start: number;
  end: number;
  rows: TimelineRow[];
}

export function timelineOf(jobs: Job[], now: number): Timeline {
  const started = jobs.filter(job => job.start_time !== undefined);
  const begins = started.map(job => Date.parse(job.start_time ?? ''));
  const ends = started.map(job => (job.finish_time === undefined ? now : Date.parse(job.finish_time)));
  const start = begins.length === 0 ? now : Math.min(...begins);
  const end = Math.max(start + 1, ...ends);
  const part = (time: number) => Math.min(1, Math.max(0, (time - start) / (end - start)));
  const rows = new Map<string, TimelineRow>();
  started.forEach((job, index) => {
    const task = job.task_name ?? '';
    const key = `${task} ${job.job_cookie ?? job.id}`;
    const row = rows.get(key) ?? { key, task, cookie: job.job_cookie, spans: [] };
    row.spans.push({ job, from: part(begins[index] ?? start), to: part(ends[index] ?? end) });
    rows.set(key, row);
  });
  const ordered = [...rows.values()].sort(
    (a, b) => a.task.localeCompare(b.task) || (a.cookie ?? 0) - (b.cookie ?? 0),
  );
  for (const row of ordered) row.spans.sort((a, b) => a.from - b.from);
  return { start, end, rows: ordered };
}
