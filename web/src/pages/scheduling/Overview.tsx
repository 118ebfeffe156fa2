/** The tree as a whole: what there is, what is promised, what is used. */

import { ChevronDown, ChevronRight } from '@gravity-ui/icons';
import { Button, Icon } from '@gravity-ui/uikit';
import { StackBar } from '../../components/Bar';
import { useLive } from '../../api/live';
import { rootCounts, type TreeSummary } from '../../api/scheduling';
import { count, percent, plural } from '../../model/format';
import type { Pool } from '../../model/pools';
import { amount, amountOf, present, ratio, resourceTitle, type Resources } from '../../model/resources';
import { useUrlState } from '../../model/urlState';

interface Props {
  tree: string;
  summary: TreeSummary;
  root: Pool | undefined;
}

export function Overview({ tree, summary, root }: Props) {
  const [url, change] = useUrlState();
  const open = url.get('config') === 'open';
  const total = summary.resource_limits;
  const promised = summary.resource_distribution_info.distributed_resources;
  return (
    <section className="card" aria-label="The tree as a whole">
      <div className="overview">
        {present(total).map(resource => {
          const all = amountOf(total, resource);
          const used = amountOf(summary.resource_usage, resource);
          return (
            <div className="gauge" key={resource}>
              <span>{resourceTitle(resource)}</span>
              <Gauge
                used={used / all}
                promised={ratio(amountOf(promised, resource), all)}
                title={resourceTitle(resource)}
              />
              <span className="gauge__text">
                {amount(resource, used)} <span className="secondary">of {amount(resource, all)}</span>
              </span>
            </div>
          );
        })}
      </div>
      <div className="overview__foot">
        <span className="secondary">
          {plural(summary.node_count, 'node')}, {plural(Math.max(0, summary.pool_count - 1), 'pool')},{' '}
          {plural(root?.operation_count ?? 0, 'operation')}
        </span>
        <span className="legend">
          <span>
            <i className="legend__usage" /> used
          </span>
          <span>
            <i className="legend__guarantee" /> promised
          </span>
        </span>
        <Button
          size="s"
          view="flat"
          aria-expanded={open}
          onClick={() => change({ config: open ? undefined : 'open' })}
        >
          <Icon data={open ? ChevronDown : ChevronRight} size={14} />
          Static configuration
        </Button>
      </div>
      {open && <StaticConfiguration tree={tree} summary={summary} />}
    </section>
  );
}

function Gauge({ used, promised, title }: { used: number; promised: number; title: string }) {
  return (
    <div
      className="gauge__bar"
      title={`${title}: ${percent(used)} used, ${percent(promised)} promised by strong guarantees`}
    >
      <StackBar segments={[{ kind: 'usage', part: used, label: `${percent(used)} used` }]} />
      {promised > 0 && (
        <i className="gauge__mark" style={{ left: `calc(${Math.min(100, promised * 100)}% - 2px)` }} />
      )}
    </div>
  );
}

function StaticConfiguration({ tree, summary }: { tree: string; summary: TreeSummary }) {
  // The table asks for no more of each pool than its columns need.
  const { data: root } = useLive(['pools', 'operations'], ['counts of the tree', tree], () =>
    rootCounts(tree),
  );
  const { distributed_resources, distributed_burst_guarantee_resources, distributed_resource_flow } =
    summary.resource_distribution_info;
  const total = summary.resource_limits;
  const kinds: [string, Resources | undefined][] = [
    ['Strong guarantees', distributed_resources],
    ['Burst guarantees', distributed_burst_guarantee_resources],
    ['Resource flow', distributed_resource_flow],
  ];
  const rows = present(total)
    .filter(resource => resource !== 'user_slots')
    .flatMap(resource =>
      kinds
        .filter(([kind, given]) => kind === 'Strong guarantees' || amountOf(given, resource) > 0)
        .map(([kind, given]) => ({
          resource,
          kind,
          total: amountOf(total, resource),
          given: amountOf(given, resource),
        })),
    );
  const operations = [
    {
      title: 'Running operations',
      total: root?.max_running_operation_count,
      now: root?.running_operation_count,
    },
    { title: 'Operations', total: root?.max_operation_count, now: root?.operation_count },
  ].filter(row => row.now !== undefined);
  return (
    <div className="sheet-box" tabIndex={0}>
      <table className="sheet">
        <thead>
          <tr>
            <th>Resource</th>
            <th>Promised as</th>
            <th className="right">Total</th>
            <th className="right">Distributed</th>
            <th className="right">Delta</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(row => (
            <tr key={`${row.resource} ${row.kind}`}>
              <td>{resourceTitle(row.resource)}</td>
              <td>{row.kind}</td>
              <td className="right">{amount(row.resource, row.total)}</td>
              <td className="right">{amount(row.resource, row.given)}</td>
              <td className={row.total < row.given ? 'right bad' : 'right'}>
                {amount(row.resource, row.total - row.given)}
              </td>
            </tr>
          ))}
          {operations.map(row => (
            <tr key={row.title}>
              <td>{row.title}</td>
              <td>limit of the tree</td>
              <td className="right">{count(row.total)}</td>
              <td className="right">{count(row.now)}</td>
              <td className="right">{row.total === undefined ? '' : count(row.total - (row.now ?? 0))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
