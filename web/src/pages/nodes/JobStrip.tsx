/** The jobs of a node side by side, as wide as their part of its processors, coloured by pool. */

import { Link } from 'wouter';
import type { Node, Owner } from '../../api/nodes';
import type { Job } from '../../api/operations';
import { poolColors } from '../../model/colors';
import { number, plural, shortId } from '../../model/format';
import { links } from '../../model/links';
import { amountOf } from '../../model/resources';

interface Props {
  node: Node;
  jobs: Record<string, Job>;
  owners: Record<string, Owner>;
  color: (pool: string) => string;
}

export function JobStrip({ node, jobs, owners, color }: Props) {
  const all = amountOf(node.resource_limits, 'cpu');
  const sorted = Object.values(jobs).sort(
    (a, b) => poolOf(a, owners).localeCompare(poolOf(b, owners)) || a.id.localeCompare(b.id),
  );
  return (
    <div className="node-strip" role="group" aria-label={plural(sorted.length, 'job')}>
      {sorted.map(job => {
        const owner = owners[job.operation_id ?? ''];
        const cpu = cpuOf(owner);
        const title = `${owner?.title ?? shortId(job.operation_id ?? '')}\npool ${owner?.pool ?? 'unknown'}, ${number(cpu)} CPU\njob ${job.id}`;
        return (
          <Link
            key={job.id}
            href={links.job(job.operation_id ?? '', job.id)}
            title={title}
            aria-label={title}
            style={{ width: `${(cpu / Math.max(all, 1e-9)) * 100}%`, background: color(owner?.pool ?? '') }}
          />
        );
      })}
    </div>
  );
}

/** Colours of the pools of these operations. */
export const colorsOf = (owners: Record<string, Owner>): ((pool: string) => string) =>
  poolColors(Object.values(owners).flatMap(owner => (owner.pool === undefined ? [] : [owner.pool])));

const poolOf = (job: Job, owners: Record<string, Owner>): string =>
  owners[job.operation_id ?? '']?.pool ?? '';

/** The mean of the operation's jobs: what each has is not shown by the API. */
function cpuOf(owner: Owner | undefined): number {
  const jobs = owner?.allocation_count ?? 0;
  return jobs === 0 ? 0.5 : amountOf(owner?.resource_usage, 'cpu') / jobs;
}
