/** What a node holds, side by side, each as wide as its part of the processors. */

import { Link } from 'wouter';
import type { Allocation } from '../../api/nodes';
import { GROUPS, stripOf, type Color, type ColorBy } from '../../model/allocations';
import { plural, shortId } from '../../model/format';
import { links } from '../../model/links';
import { resourcesInWords, type Resources } from '../../model/resources';

interface Props {
  limits: Resources;
  allocations: Allocation[];
  titles: Record<string, string>;
  by: ColorBy;
  color: Color;
}

export function AllocationStrip({ limits, allocations, titles, by, color }: Props) {
  const { placed, end } = stripOf(allocations, limits, by);
  return (
    <div className="node-strip" role="group" aria-label={plural(placed.length, 'allocation')}>
      {placed.map(({ allocation, width }) => {
        const title = titleOf(allocation, titles);
        return (
          <Link
            key={allocation.id}
            href={hrefOf(allocation)}
            title={title}
            aria-label={title}
            className={allocation.preempting === true ? 'node-strip__leaving' : undefined}
            style={{ width: `${width * 100}%`, backgroundColor: color(allocation) }}
          />
        );
      })}
      {end < 0.9999 && (
        <i className="node-strip__end" title="more than the node has" style={{ left: `${end * 100}%` }} />
      )}
    </div>
  );
}

const hrefOf = ({ operation_id, job_id }: Allocation): string =>
  job_id == null ? links.operation(operation_id) : links.job(operation_id, job_id);

const titleOf = (allocation: Allocation, titles: Record<string, string>): string =>
  [
    titles[allocation.operation_id] ?? shortId(allocation.operation_id),
    `pool ${allocation.pool}, ${resourcesInWords(allocation.resources)}`,
    GROUPS[allocation.group].hint,
    allocation.preempting === true ? 'told to go' : '',
  ]
    .filter(line => line !== '')
    .join('\n');
