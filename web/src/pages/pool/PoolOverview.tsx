/** A pool at a glance: its share, its counts, resource by resource, and all of it over time. */

import { TriangleExclamation } from '@gravity-ui/icons';
import { Icon } from '@gravity-ui/uikit';
import { PartBar, ShareBar, ShareLegend } from '../../components/Bar';
import { Card, Facts } from '../../components/Parts';
import { barOf, charge, modeTitle } from '../../model/columns';
import { count, number, percent, seconds, words } from '../../model/format';
import type { Pool } from '../../model/pools';
import {
  amount,
  amountInWords,
  amountOf,
  coreTime,
  present,
  resourceTitle,
  type Resource,
  type Resources,
} from '../../model/resources';
import { PoolCharts } from './PoolCharts';

interface Props {
  tree: string;
  name: string;
  pool: Pool;
  total: Resources;
}

export function PoolOverview({ tree, name, pool, total }: Props) {
  const dominant = pool.dominant_resource ?? 'cpu';
  const of = (share: number | undefined) => amountInWords(dominant, (share ?? 0) * amountOf(total, dominant));
  const both = (share: number | undefined) => `${percent(share ?? 0)} (${of(share)})`;
  const integral = pool.integral_guarantee_type !== undefined && pool.integral_guarantee_type !== 'none';
  const detailed = pool.detailed_dominant_fair_share;
  return (
    <>
      <div className="cards">
        <Card title="Share of the cluster">
          <ShareBar {...barOf(pool, undefined, total)} tall />
          <div className="legend-row">
            <ShareLegend />
          </div>
          <Facts
            items={[
              ['Usage', both(pool.usage_ratio)],
              ['Fair share', both(pool.fair_share_ratio)],
              ['Demand', both(pool.demand_ratio)],
              [
                'By strong guarantee',
                detailed && detailed.strong_guarantee > 0 && both(detailed.strong_guarantee),
              ],
              [
                'By integral guarantee',
                detailed && detailed.integral_guarantee > 0 && both(detailed.integral_guarantee),
              ],
              ['By weight', detailed && both(detailed.weight_proportional)],
              ['Dominant resource', resourceTitle(dominant)],
            ]}
          />
        </Card>
        <Card title="Operations and mode">
          <CountLine
            title="Running"
            value={pool.running_operation_count}
            limit={pool.max_running_operation_count}
          />
          <CountLine title="All" value={pool.operation_count} limit={pool.max_operation_count} />
          <Facts
            items={[
              ['Waiting for a place', count(waiting(pool))],
              [
                'Lightweight',
                pool.lightweight_running_operation_count
                  ? count(pool.lightweight_running_operation_count)
                  : undefined,
              ],
              ['Mode', modeTitle(pool.mode ?? '')],
              ['FIFO order', pool.mode === 'fifo' && pool.fifo_sort_parameters?.map(words).join(', then ')],
              ['Weight', number(pool.weight)],
              ['Status', words(pool.scheduling_status ?? '')],
              ['Starvation', words(pool.starvation_status ?? '')],
            ]}
          />
        </Card>
        {integral && <Integral pool={pool} total={total} />}
      </div>
      <Card title="Resources">
        <ByResource pool={pool} total={total} />
      </Card>
      <PoolCharts
        tree={tree}
        name={name}
        total={total}
        dominant={dominant}
        capacity={integral ? pool.integral_pool_ratio_capacity : undefined}
      />
    </>
  );
}

const waiting = (pool: Pool): number =>
  Math.max(
    0,
    (pool.operation_count ?? 0) -
      (pool.running_operation_count ?? 0) -
      (pool.lightweight_running_operation_count ?? 0),
  );

function CountLine({
  title,
  value = 0,
  limit,
}: {
  title: string;
  value: number | undefined;
  limit: number | undefined;
}) {
  if (limit === undefined) return null;
  const part = limit === 0 ? 1 : value / limit;
  return (
    <div className="gauge">
      <span className="secondary">{title}</span>
      <PartBar
        part={part}
        kind={part >= 1 ? 'full' : 'plain'}
        label={`${count(value)} of at most ${count(limit)}`}
      />
      <span className="gauge__text">
        {count(value)} <span className="secondary">of {count(limit)}</span>
      </span>
    </div>
  );
}

function Integral({ pool, total }: { pool: Pool; total: Resources }) {
  const part = charge(pool) ?? 0;
  const cores = (share: number | undefined) =>
    share === undefined
      ? undefined
      : `${amountInWords('cpu', share * amountOf(total, 'cpu'))} (${percent(share)})`;
  return (
    <Card title="Integral guarantee">
      <div className="gauge">
        <span className="secondary">Volume</span>
        <PartBar part={part} kind="volume" label={`${percent(part)} of the capacity`} />
        <span className="gauge__text">{percent(part)}</span>
      </div>
      <Facts
        items={[
          ['Type', pool.integral_guarantee_type],
          ['Accumulated', coreTime(pool.accumulated_resource_ratio_volume, amountOf(total, 'cpu'))],
          ['Capacity', coreTime(pool.integral_pool_ratio_capacity, amountOf(total, 'cpu'))],
          ['Flow', cores(pool.specified_resource_flow_ratio)],
          ['Burst, configured', resourcesOf(pool.specified_burst_guarantee_resources, 'cpu')],
          [
            'Burst, in force',
            pool.integral_guarantee_type === 'burst' ? cores(pool.specified_burst_ratio) : undefined,
          ],
          ['Burst lasts', seconds(pool.estimated_burst_usage_duration_seconds)],
        ]}
      />
    </Card>
  );
}

const resourcesOf = (resources: Resources | undefined, resource: Resource): string | undefined =>
  resources === undefined || amountOf(resources, resource) === 0
    ? undefined
    : amountInWords(resource, amountOf(resources, resource));

function ByResource({ pool, total }: { pool: Pool; total: Resources }) {
  return (
    <div className="sheet-box" tabIndex={0}>
      <table className="sheet">
        <thead>
          <tr>
            <th>Resource</th>
            <th className="bar-column">Usage, fair share, demand</th>
            <th className="right">Usage</th>
            <th className="right">Fair share</th>
            <th className="right">Demand</th>
            <th className="right">Guarantee</th>
            <th className="right">in force</th>
            <th className="right">Limit</th>
            <th className="right">Cluster</th>
          </tr>
        </thead>
        <tbody>
          {present(total).map(resource => {
            const configured = amountOf(pool.strong_guarantee_resources, resource);
            const effective = amountOf(pool.effective_strong_guarantee_resources, resource);
            const limit = pool.specified_resource_limits?.[resource];
            return (
              <tr key={resource}>
                <td>{resourceTitle(resource)}</td>
                <td>
                  <ShareBar {...barOf(pool, resource, total)} />
                </td>
                <td className="right">{amount(resource, amountOf(pool.resource_usage, resource))}</td>
                <td className="right">{amount(resource, amountOf(pool.fair_resources, resource))}</td>
                <td className="right">{amount(resource, amountOf(pool.resource_demand, resource))}</td>
                <td className="right">{configured > 0 ? amount(resource, configured) : '–'}</td>
                <td className="right">
                  {effective < configured * 0.999 && (
                    <span className="warn" title="Less than configured: see Why this share">
                      <Icon data={TriangleExclamation} size={12} />{' '}
                    </span>
                  )}
                  {effective > 0 ? amount(resource, effective) : '–'}
                </td>
                <td className="right">{limit === undefined ? '–' : amount(resource, limit)}</td>
                <td className="right secondary">{amount(resource, amountOf(total, resource))}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
