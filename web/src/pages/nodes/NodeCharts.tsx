/** A node over time: what was taken of it, and what there was to take. */

import { useLive } from '../../api/live';
import { nodeHistory, type NodeHistory } from '../../api/history';
import { Async } from '../../components/Async';
import { Chart, type Line } from '../../components/Chart';
import { Card } from '../../components/Parts';
import { RangeChoice, useRange } from '../../components/RangeChoice';
import { bytes, number } from '../../model/format';
import { timesOf } from '../../model/history';

export function NodeCharts({ address, gpu }: { address: string; gpu: boolean }) {
  const range = useRange();
  const history = useLive('nodes', ['node history', address, range.id], () =>
    nodeHistory(address, range.start, range.step),
  );
  return (
    <Async query={history}>
      {data =>
        data === null ? (
          <p className="secondary">The node has not reported yet.</p>
        ) : (
          <div className="cards cards_wide">
            <Card title="CPU over time" extra={<RangeChoice />}>
              <Taken history={data} what="cpu" format={value => `${number(value)} cores`} axis={number} />
            </Card>
            <Card title="Memory over time">
              <Taken history={data} what="memory" format={bytes} axis={bytes} inBytes />
            </Card>
            {gpu && (
              <Card title="GPU over time">
                <Taken history={data} what="gpu" format={number} axis={number} />
              </Card>
            )}
          </div>
        )
      }
    </Async>
  );
}

interface TakenProps {
  history: NodeHistory;
  what: 'cpu' | 'memory' | 'gpu';
  format: (value: number) => string;
  axis: (value: number) => string;
  inBytes?: boolean;
}

function Taken({ history, what, format, axis, inBytes = false }: TakenProps) {
  const { columns } = history;
  const lines: Line[] = [
    { title: 'Taken by jobs', color: '--mp-usage', values: columns[`${what}_usage`], filled: true, width: 2 },
    { title: 'There is', color: '--mp-demand', values: columns[`${what}_limit`], dashed: true },
  ];
  return (
    <Chart
      label={`${what} of the node over time`}
      times={timesOf(history)}
      lines={lines}
      format={format}
      axisFormat={axis}
      inBytes={inBytes}
      height={160}
    />
  );
}
