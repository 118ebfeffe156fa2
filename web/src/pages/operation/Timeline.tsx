/** When each unit of work ran, where it was interrupted, and when it ran again. */

import { Link } from 'wouter';
import { useLive } from '../../api/live';
import { listJobs, type Operation } from '../../api/operations';
import { Async } from '../../components/Async';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { count, duration, elapsed, plural, time, words } from '../../model/format';
import { links } from '../../model/links';
import { timelineOf, type Span, type TimelineRow } from '../../model/timeline';

/** The newest ones; more would be no picture any more. */
const SHOWN = 1_000;

const KINDS = ['running', 'completed', 'aborted', 'failed'];

export function Timeline({ operation }: { operation: Operation }) {
  const jobs = useLive(`operation/${operation.id}`, ['timeline', operation.id], () =>
    listJobs(operation.id, { sort_field: 'start_time', sort_order: 'descending', limit: SHOWN, offset: 0 }),
  );
  return (
    <Async query={jobs}>
      {data => {
        const { start, end, rows } = timelineOf(data.jobs, Date.now());
        const columns: TableColumn<TimelineRow>[] = [
          {
            id: 'unit',
            title: 'Unit of work',
            width: 170,
            cell: row => (
              <span className="clip">
                {row.task} <span className="secondary">#{row.cookie}</span>
              </span>
            ),
          },
          {
            id: 'runs',
            title: 'Runs',
            width: 70,
            numeric: true,
            cell: row => count(row.spans.length),
          },
          {
            id: 'time',
            title: `${time(new Date(start).toISOString())} to ${time(new Date(end).toISOString())}, ${duration(end - start)}`,
            width: 320,
            grow: true,
            cell: row => <Bars operation={operation.id} spans={row.spans} />,
          },
        ];
        return (
          <>
            <div className="legend">
              {KINDS.map(kind => (
                <span key={kind}>
                  <i className={`timeline__job timeline__job_${kind}`} /> {kind}
                </span>
              ))}
              {data.continuation_token !== undefined && <span>the newest {plural(SHOWN, 'job')}</span>}
            </div>
            <DataTable
              label="Timeline of jobs"
              columns={columns}
              rows={rows}
              rowKey={row => row.key}
              rowHeight={26}
              empty="No job of it has been started yet."
            />
          </>
        );
      }}
    </Async>
  );
}

function Bars({ operation, spans }: { operation: string; spans: Span[] }) {
  return (
    <div className="timeline">
      {spans.map(({ job, from, to }) => {
        const why = job.abort_reason === undefined ? '' : `, ${words(job.abort_reason)}`;
        const title = `${words(job.state)}${why}, ${duration(elapsed(job.start_time, job.finish_time))} on ${job.address ?? '?'}`;
        return (
          <Link
            key={job.id}
            href={links.job(operation, job.id)}
            title={title}
            aria-label={title}
            className={`timeline__job timeline__job_${KINDS.includes(job.state) ? job.state : 'running'}`}
            style={{ left: `${from * 100}%`, width: `max(3px, ${(to - from) * 100}%)` }}
          />
        );
      })}
    </div>
  );
}
