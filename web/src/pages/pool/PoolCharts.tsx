/** A pool over time: the pictures of guarantees, with real data. */

import { useMemo } from 'react';
import { useLive } from '../../api/live';
import { poolHistory, type PoolHistory, type Series } from '../../api/history';
import { Async } from '../../components/Async';
import { Chart, type Line } from '../../components/Chart';
import { Card } from '../../components/Parts';
import { RangeChoice, useRange } from '../../components/RangeChoice';
import { number, percent } from '../../model/format';
import { scaled, sum, timesOf } from '../../model/history';
import { amount, amountOf, coreTime, ratio, resourceTitle, type Resources } from '../../model/resources';

interface Props {
  tree: string;
  name: string;
  total: Resources;
  dominant: string;
  /** Of the volume, in cluster seconds; for pools with an integral guarantee. */
  capacity: number | undefined;
}

export function PoolCharts({ tree, name, total, dominant, capacity }: Props) {
  const range = useRange();
  const history = useLive('pools', ['history', tree, name, range.id], () =>
    poolHistory(tree, name, range.start, range.step),
  );
  return (
    <Async query={history}>
      {data => (
        <>
          <Card title={`Share over time, by ${resourceTitle(dominant)}`} extra={<RangeChoice />}>
            <Shares history={data} whole={amountOf(total, dominant)} resource={dominant} />
          </Card>
          {capacity !== undefined && capacity > 0 && (
            <Card title="Accumulated volume against capacity">
              <Volume history={data} capacity={capacity} cores={amountOf(total, 'cpu')} />
            </Card>
          )}
        </>
      )}
    </Async>
  );
}

/** In amounts, so that the marks of the axis are round numbers. */
function Shares({ history, whole, resource }: { history: PoolHistory; whole: number; resource: string }) {
  const [times, lines] = useMemo((): [number[], Line[]] => {
    const { demand, usage, fair_share, strong_guarantee, integral_guarantee } = history.columns;
    const most = Math.max(1, ...[...usage, ...fair_share].map(value => value ?? 0));
    // A demand far above everything else would flatten what it is compared with.
    const amounts = (shares: Series) => scaled(shares, share => Math.min(share, most) * whole);
    const guarantees = sum(strong_guarantee, integral_guarantee);
    return [
      timesOf(history),
      [
        { title: 'Demand', color: '--mp-demand', values: amounts(demand), filled: true },
        { title: 'Fair share', color: '--mp-weight', values: amounts(fair_share), filled: true },
        { title: 'Usage', color: '--mp-usage', values: amounts(usage), width: 2 },
        { title: 'Guaranteed in it', color: '--mp-guarantee', values: amounts(guarantees), dashed: true },
      ],
    ];
  }, [history, whole]);
  return (
    <Chart
      label="Demand, fair share, usage and guarantees over time"
      times={times}
      lines={lines}
      format={value => `${amount(resource, value)} (${percent(ratio(value, whole))})`}
      axisFormat={value => amount(resource, value)}
    />
  );
}

/** A unit of core time in which this much is a number that can be read. */
function unitFor(coreSeconds: number): { seconds: number; name: string; short: string } {
  if (coreSeconds < 600) return { seconds: 1, name: 'core seconds', short: 's' };
  if (coreSeconds < 36_000) return { seconds: 60, name: 'core minutes', short: 'min' };
  return { seconds: 3_600, name: 'core hours', short: 'h' };
}

function Volume({ history, capacity, cores }: { history: PoolHistory; capacity: number; cores: number }) {
  const volume = history.columns.accumulated_resource_ratio_volume;
  const largest = Math.max(0, ...volume.map(value => value ?? 0));
  // Far from full, the capacity would leave nothing to be seen of the volume.
  const near = largest > capacity / 20;
  const unit = unitFor((near ? capacity : largest) * cores);
  const [times, lines] = useMemo((): [number[], Line[]] => {
    const units = (value: number) => (value * cores) / unit.seconds;
    const line: Line = {
      title: 'Accumulated',
      color: '--mp-volume',
      values: scaled(volume, units),
      filled: true,
    };
    const full: Line = {
      title: 'Capacity',
      color: '--mp-demand',
      values: volume.map(() => units(capacity)),
      dashed: true,
    };
    return [timesOf(history), near ? [line, full] : [line]];
  }, [history, volume, capacity, cores, near, unit.seconds]);
  return (
    <>
      <Chart
        label="Accumulated volume over time"
        times={times}
        lines={lines}
        format={value => `${number(value)} ${unit.name}`}
        axisFormat={value => `${number(value)} ${unit.short}`}
        height={180}
      />
      {!near && (
        <p className="secondary chart-note">The capacity, {coreTime(capacity, cores)}, is far above.</p>
      )}
    </>
  );
}
