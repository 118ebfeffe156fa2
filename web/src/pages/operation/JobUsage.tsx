/** What a running job uses of its processors and its memory, over time, and what the node makes of it. */

import { memo, useState } from 'react';
import { jobHistory, type JobHistory } from '../../api/history';
import { useLive } from '../../api/live';
import { explainJob, type JobDetails, type JobExplanation } from '../../api/operations';
import { Chart, type Line } from '../../components/Chart';
import { Card, Facts } from '../../components/Parts';
import { Histogram } from '../../components/Histogram';
import { bytes, duration, number, percent } from '../../model/format';
import { constant, isKept, timesOf } from '../../model/history';
import { statistic } from '../../model/statistics';

export function JobUsage({ job }: { job: JobDetails }) {
  const running = job.state === 'running';
  const { data: why } = useLive('any', ['explain job', job.id], () => explainJob(job.id), {
    enabled: running,
  });
  const [start, end] = lifeOf(job);
  const [opened] = useState(() => Date.now());
  const { data: history } = useLive(
    `operation/${job.operation_id ?? ''}`,
    ['job history', job.id, start, end],
    () => jobHistory(job.id, start ?? '', end),
    // Before its node has reported there is none, and hours later none any more: the question would be an error.
    {
      enabled:
        start !== undefined && (statistic(job.statistics, 'time/exec') ?? 0) > 0 && isKept(end, opened),
    },
  );
  return (
    <>
      {!running && <Ended job={job} />}
      {history != null ? (
        <Charts history={history} job={job} />
      ) : (
        running && <p className="secondary">The first figures come with the next reports of the node.</p>
      )}
      {running && why != null && <Explained why={why} />}
    </>
  );
}

/** From its start to its end; a job that runs has none. Within one second there would be nothing to draw. */
function lifeOf(job: JobDetails): [string | undefined, string | undefined] {
  const end = job.finish_time === undefined ? undefined : new Date(Date.parse(job.finish_time) + 1_000);
  return [job.start_time, end?.toISOString()];
}

const cores = (value: number): string => `${number(value)} ${value === 1 ? 'core' : 'cores'}`;

const Charts = memo(function Charts({ history, job }: { history: JobHistory; job: JobDetails }) {
  const { columns } = history;
  const times = timesOf(history);
  const millicores = statistic(job.statistics, 'user_job/cpu_reserve_millicores');
  const ordered = millicores === undefined ? undefined : millicores / 1_000;
  const limit = statistic(job.statistics, 'user_job/memory_limit');
  const cpu: Line[] = [
    { title: 'Usage', color: '--mp-weight', values: columns.cpu_usage, filled: true },
    { title: 'Smoothed', color: '--mp-usage', values: columns.cpu_smoothed, width: 2 },
    { title: 'Guaranteed now', color: '--mp-guarantee', values: columns.cpu_guarantee },
    { title: 'Ordered', color: '--mp-demand', values: constant(history, ordered), dashed: true },
  ];
  const memory: Line[] = [
    { title: 'In use', color: '--mp-weight', values: columns.memory_usage, filled: true },
    { title: 'Peak', color: '--mp-usage', values: columns.memory_peak, width: 2 },
    { title: 'Reserved', color: '--mp-guarantee', values: columns.memory_reserve },
    { title: 'Limit', color: '--mp-demand', values: constant(history, limit), dashed: true },
  ];
  return (
    <>
      <Card title="CPU">
        <Chart
          label="CPU of the job over time"
          times={times}
          lines={cpu}
          format={cores}
          axisFormat={number}
          height={180}
        />
      </Card>
      <Card title="Memory">
        <Chart
          label="Memory of the job over time"
          times={times}
          lines={memory}
          format={bytes}
          inBytes
          height={180}
        />
      </Card>
    </>
  );
});

function Explained({ why }: { why: JobExplanation }) {
  const { user_job } = why.memory;
  return (
    <div className="cards cards_wide">
      <Card title="What the node makes of it">
        <ul className="why">
          {why.text.map(line => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      </Card>
      <Card title="What ended jobs of its task used of their memory">
        <Histogram digest={user_job.digest} mark={{ at: user_job.factor, title: 'reserved for this job' }} />
      </Card>
    </div>
  );
}

/** Of a job that is over: the totals, however long ago it was. */
function Ended({ job }: { job: JobDetails }) {
  const of = (path: string) => statistic(job.statistics, path);
  const [user, system, exec] = [of('user_job/cpu/user'), of('user_job/cpu/system'), of('time/exec')];
  const cpu = user === undefined || system === undefined ? undefined : user + system;
  const millicores = of('user_job/cpu_reserve_millicores');
  const [peak, limit, reserve] = [
    of('user_job/max_memory'),
    of('user_job/memory_limit'),
    of('user_job/memory_reserve'),
  ];
  if (cpu === undefined && peak === undefined) {
    return <p className="secondary">It ended before anything was measured.</p>;
  }
  return (
    <div className="cards">
      <Card title="CPU">
        <Facts
          items={[
            ['Processor time', cpu !== undefined && duration(cpu)],
            ['On average', cpu !== undefined && exec ? cores(cpu / exec) : undefined],
            ['Ordered', millicores !== undefined && cores(millicores / 1_000)],
          ]}
        />
      </Card>
      <Card title="Memory">
        <Facts
          items={[
            ['Peak', peak !== undefined && bytes(peak)],
            ['Reserved', reserve !== undefined && bytes(reserve)],
            ['Limit', limit !== undefined && bytes(limit)],
            ['Peak of the limit', peak !== undefined && limit ? percent(peak / limit) : undefined],
          ]}
        />
      </Card>
    </div>
  );
}
