/** What a running job uses of its processors and its memory, over time, and what the node makes of it. */

import { memo, useEffect, useState } from 'react';
import { useLive } from '../../api/live';
import { explainJob, type JobDetails, type JobExplanation } from '../../api/operations';
import { Chart, type Line } from '../../components/Chart';
import { Card, Facts } from '../../components/Parts';
import { Histogram } from '../../components/Histogram';
import { bytes, duration, number, percent } from '../../model/format';
import { EMPTY, recorded, statistic, type Moment, type Recording } from '../../model/recording';

export function JobUsage({ job }: { job: JobDetails }) {
  const running = job.state === 'running';
  const { data: why } = useLive('any', ['explain job', job.id], () => explainJob(job.id), running);
  const recording = useRecording(job, running ? why : undefined);
  const watched = recording.moments.length > 1;
  return (
    <>
      {!running && <Ended job={job} />}
      {(running || watched) && <Charts moments={recording.moments} />}
      {running && why != null && <Explained why={why} />}
    </>
  );
}

const Charts = memo(function Charts({ moments }: { moments: Moment[] }) {
  return (
    <>
      <CpuChart moments={moments} />
      <MemoryChart moments={moments} />
    </>
  );
});

/** Recordings of the jobs that were looked at last, so that a change of tabs does not lose them. */
const kept = new Map<string, Recording>();
const KEPT = 8;

function useRecording(job: JobDetails, why: JobExplanation | null | undefined): Recording {
  const [recording, setRecording] = useState(() => kept.get(job.id) ?? EMPTY);
  useEffect(() => {
    // Without the explanation, half of the lines would have gaps.
    if (why === undefined) return;
    const next = recorded(kept.get(job.id) ?? EMPTY, Date.now(), job, why);
    kept.delete(job.id);
    kept.set(job.id, next);
    for (const oldest of kept.keys()) {
      if (kept.size <= KEPT) break;
      kept.delete(oldest);
    }
    setRecording(next);
  }, [job, why]);
  return recording;
}

const timesOf = (moments: Moment[]): number[] => moments.map(moment => moment.time / 1_000);
const cores = (value: number): string => `${number(value)} cores`;

function CpuChart({ moments }: { moments: Moment[] }) {
  const lines: Line[] = [
    { title: 'Usage', color: '--mp-weight', values: moments.map(m => m.usage), filled: true },
    { title: 'Smoothed', color: '--mp-usage', values: moments.map(m => m.smoothed), width: 2 },
    { title: 'Guaranteed now', color: '--mp-guarantee', values: moments.map(m => m.limit) },
    { title: 'Ordered', color: '--mp-demand', values: moments.map(m => m.hardLimit), dashed: true },
  ];
  return (
    <Card title="CPU">
      <Chart
        label="CPU of the job over time"
        times={timesOf(moments)}
        lines={lines}
        format={cores}
        axisFormat={number}
        height={180}
        empty="The first figures come with the next reports of the node."
      />
    </Card>
  );
}

function MemoryChart({ moments }: { moments: Moment[] }) {
  const lines: Line[] = [
    { title: 'In use', color: '--mp-weight', values: moments.map(m => m.memory), filled: true },
    { title: 'Peak', color: '--mp-usage', values: moments.map(m => m.peak), width: 2 },
    { title: 'Reserved', color: '--mp-guarantee', values: moments.map(m => m.reserve) },
    { title: 'Limit', color: '--mp-demand', values: moments.map(m => m.memoryLimit), dashed: true },
  ];
  return (
    <Card title="Memory">
      <Chart
        label="Memory of the job over time"
        times={timesOf(moments)}
        lines={lines}
        format={bytes}
        inBytes
        height={180}
        empty="The first figures come with the next reports of the node."
      />
    </Card>
  );
}

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

/** Of a job that is over only the totals are known. */
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
