/** Statistics of jobs as rows of a table: tree, filtered and summed up over tags. */

import type { JobStatistics, StatisticsTree, Summary, TaggedSummary } from '../api/operations';
import { bytes, count, duration, number } from './format';

export interface StatisticsFilter {
  state?: string | undefined;
  task?: string | undefined;
  tree?: string | undefined;
  name?: string | undefined;
}

export interface StatisticsRow {
  path: string;
  depth: number;
  name: string;
  summary: Summary | undefined;
}

/** Merged summaries of the leaves that pass; `last` is of the last of them. */
export function merged(leaves: TaggedSummary[], filter: StatisticsFilter): Summary | undefined {
  const passing = leaves.filter(
    ({ tags }) =>
      (filter.state === undefined || tags.job_state === filter.state) &&
      (filter.task === undefined || tags.job_type === filter.task) &&
      (filter.tree === undefined || tags.pool_tree === filter.tree),
  );
  const [first, ...others] = passing.map(leaf => leaf.summary);
  if (first === undefined) return undefined;
  return others.reduce(
    (all, next) => ({
      sum: all.sum + next.sum,
      count: all.count + next.count,
      min: Math.min(all.min, next.min),
      max: Math.max(all.max, next.max),
      last: next.last,
    }),
    first,
  );
}

export function statisticsRows(tree: StatisticsTree, filter: StatisticsFilter): StatisticsRow[] {
  return rowsOf(
    tree,
    node => (Array.isArray(node) ? merged(node as TaggedSummary[], filter) : undefined),
    Array.isArray,
    filter.name,
  );
}

/** The same of one job. */
export function jobStatisticsRows(tree: JobStatistics, name?: string): StatisticsRow[] {
  const isLeaf = (node: unknown): boolean => typeof (node as Partial<Summary>).sum === 'number';
  return rowsOf(tree, node => (isLeaf(node) ? (node as Summary) : undefined), isLeaf, name);
}

function rowsOf(
  tree: object,
  summaryOf: (node: unknown) => Summary | undefined,
  isLeaf: (node: unknown) => boolean,
  wanted = '',
): StatisticsRow[] {
  const search = wanted.trim().toLowerCase();
  const walk = (node: object, path: string, depth: number): StatisticsRow[] =>
    Object.entries(node)
      .sort(([a], [b]) => a.localeCompare(b))
      .flatMap(([name, inner]: [string, unknown]) => {
        const here = path === '' ? name : `${path}/${name}`;
        if (isLeaf(inner)) {
          const summary = summaryOf(inner);
          return summary !== undefined && here.toLowerCase().includes(search)
            ? [{ path: here, depth, name, summary }]
            : [];
        }
        const inside = walk(inner as object, here, depth + 1);
        return inside.length === 0 ? [] : [{ path: here, depth, name, summary: undefined }, ...inside];
      });
  return walk(tree, '', 0);
}

/** By what the name says about the unit. */
export function statisticText(path: string, value: number | undefined): string {
  if (value === undefined) return '';
  if (/_x10000$/.test(path)) return number(value / 10_000);
  if (/_x100$/.test(path)) return number(value / 100);
  if (/millicores$/.test(path)) return number(value / 1_000);
  if (/cumulative_.*(memory|reserve)$/.test(path)) return `${bytes(value)}·s`;
  if (/memory_mb_sec$/.test(path)) return `${count(Math.round(value))} MB·s`;
  if (/(^|\/)(time|cpu)\//.test(path)) return duration(value);
  if (/memory|_size$|bytes|data_weight|rss|mapped_file/.test(path)) return bytes(value);
  return number(value);
}

/** The statistic at a path like `user_job/cpu/user`. */
export function statistic(statistics: JobStatistics | undefined, path: string): number | undefined {
  let at: JobStatistics | Summary | undefined = statistics;
  for (const name of path.split('/')) {
    at = (at as JobStatistics | undefined)?.[name];
  }
  const summary = at as Summary | undefined;
  return typeof summary?.sum === 'number' ? (summary.last ?? summary.sum) : undefined;
}
