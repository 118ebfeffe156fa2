/** One job: how it went, what it printed, what it used. */

import { Link, useParams } from 'wouter';
import { Switch } from '@gravity-ui/uikit';
import { useState } from 'react';
import type { Json } from '../../api/client';
import { Refusal } from '../../api/errors';
import { useLive } from '../../api/live';
import { getJob, getStderr, listJobs, type JobDetails } from '../../api/operations';
import { Allowed } from '../../api/session-context';
import { Async } from '../../components/Async';
import { ErrorView } from '../../components/ErrorView';
import {
  Card,
  Copy,
  Crumbs,
  Elapsed,
  Facts,
  Mark,
  PoolLink,
  State,
  Time,
  useTitle,
} from '../../components/Parts';
import { StatisticsTable } from '../../components/StatisticsTable';
import { Tabs, useTab, type TabItem } from '../../components/Tabs';
import { Value } from '../../components/Value';
import { duration, shortId, words } from '../../model/format';
import { links } from '../../model/links';
import { resourcesInWords } from '../../model/resources';
import { jobStatisticsRows } from '../../model/statistics';
import { JobButtons } from './JobActions';
import { JobRows, has } from './JobRows';
import { JobUsage } from './JobUsage';

const TABS: TabItem[] = [
  { id: 'details', title: 'Details' },
  { id: 'usage', title: 'CPU and memory' },
  { id: 'output', title: 'Output' },
  { id: 'input', title: 'Input' },
  { id: 'fail_context', title: 'Input at the failure' },
  { id: 'statistics', title: 'Statistics' },
  { id: 'attributes', title: 'Attributes' },
];

export function JobPage() {
  const { id = '', job: jobId = '' } = useParams<{ id: string; job: string }>();
  useTitle(`Job ${shortId(jobId)}`);
  const tab = useTab(TABS);
  const job = useLive([`operation/${id}`, 'nodes'], ['job', id, jobId], () => getJob(id, jobId));
  return (
    <>
      <Crumbs
        items={[
          { title: 'Operations', href: links.operations() },
          { title: shortId(id), href: links.operation(id) },
          { title: 'Jobs', href: links.operation(id, 'jobs') },
          { title: jobId },
        ]}
      />
      <Async query={job}>
        {data => (
          <>
            <div className="page__head">
              <h1 className="page__title">Job {shortId(jobId)}</h1>
              <Copy text={jobId} what="id" />
              <State state={data.state} />
              {data.abort_reason !== undefined && <Mark tone="warning">{words(data.abort_reason)}</Mark>}
              <div className="page__actions">
                <Allowed to="manage" operation={id}>
                  <JobButtons job={data} />
                </Allowed>
              </div>
            </div>
            <Tabs items={TABS.filter(({ id }) => id === tab || isFor(data, id))} tab={tab}>
              {tab === 'details' && <Details job={data} operation={id} />}
              {tab === 'usage' && <JobUsage key={jobId} job={data} />}
              {tab === 'output' && <Output operation={id} job={data} />}
              {(tab === 'input' || tab === 'fail_context') && (
                <JobRows key={tab} operation={id} job={data} rows={tab} />
              )}
              {tab === 'statistics' && (
                <StatisticsTable rows={jobStatisticsRows(data.statistics ?? {})} one />
              )}
              {tab === 'attributes' && (
                <Value value={data as unknown as Json} depth={2} label="Attributes of the job" />
              )}
            </Tabs>
          </>
        )}
      </Async>
    </>
  );
}

/** Tabs of rows are for jobs that have such. */
const isFor = (job: JobDetails, tab: string): boolean =>
  (tab !== 'input' && tab !== 'fail_context') || has(job, tab);

function Details({ job, operation }: { job: JobDetails; operation: string }) {
  const winner = job.interruption_info?.preempted_for?.operation_id;
  return (
    <>
      {job.error !== undefined && <ErrorView error={new Refusal(job.error)} />}
      <div className="cards">
        <Card title="Job">
          <Facts
            items={[
              [
                'Operation',
                <Link key="operation" href={links.operation(operation)} className="mono">
                  {operation}
                </Link>,
              ],
              ['Task', job.task_name],
              ['Unit of work', job.job_cookie === undefined ? undefined : `#${job.job_cookie}`],
              [
                'Node',
                job.address !== undefined && <Link href={links.node(job.address)}>{job.address}</Link>,
              ],
              [
                'Pool',
                job.pool !== undefined && job.pool_tree !== undefined && (
                  <PoolLink tree={job.pool_tree} pool={job.pool} />
                ),
              ],
              ['Reserved', job.resource_usage !== undefined && resourcesInWords(job.resource_usage)],
              [
                'Interrupted',
                job.interruption_info?.interruption_reason !== undefined &&
                  words(job.interruption_info.interruption_reason),
              ],
              [
                'in favour of',
                winner !== undefined && (
                  <Link href={links.operation(winner)} className="mono">
                    {shortId(winner)}
                  </Link>
                ),
              ],
            ]}
          />
        </Card>
        <Card title="Times">
          <Facts
            items={[
              ['Started', <Time key="start" at={job.start_time} />],
              ['Ended', job.finish_time !== undefined && <Time at={job.finish_time} />],
              ['Duration', <Elapsed key="duration" start={job.start_time} end={job.finish_time} />],
            ]}
          />
          <Events job={job} />
        </Card>
      </div>
      {job.has_competitors === true && job.job_competition_id !== undefined && (
        <Competitors operation={operation} competition={job.job_competition_id} self={job.id} />
      )}
    </>
  );
}

/** A slow job and its copy: the first of the two to complete counts. */
function Competitors({
  operation,
  competition,
  self,
}: {
  operation: string;
  competition: string;
  self: string;
}) {
  const { data } = useLive(`operation/${operation}`, ['competitors', operation, competition], () =>
    listJobs(operation, {
      job_competition_id: competition,
      sort_field: 'start_time',
      sort_order: 'ascending',
      limit: 10,
      offset: 0,
    }),
  );
  return (
    <Card title="A slow job and its copy: the first to complete counts">
      <div className="sheet-box" tabIndex={0}>
        <table className="sheet" aria-label="A slow job and its copy">
          <tbody>
            {data?.jobs.map(job => (
              <tr key={job.id}>
                <td>
                  <Link href={links.job(operation, job.id)} className="mono" title={job.id}>
                    {shortId(job.id)}
                  </Link>
                </td>
                <td className="secondary">
                  {job.id === competition ? 'the slow one' : 'its copy'}
                  {job.id === self && ', this job'}
                </td>
                <td>
                  <State state={job.state} />
                </td>
                <td className="secondary">{words(job.abort_reason ?? '')}</td>
                <td>{job.address}</td>
                <td>
                  <Elapsed start={job.start_time} end={job.finish_time} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

/** States and phases with the time since the one before. */
function Events({ job }: { job: JobDetails }) {
  const events = job.events ?? [];
  if (events.length === 0) return null;
  return (
    <table className="sheet events">
      <thead>
        <tr>
          <th>State</th>
          <th>Phase</th>
          <th>At</th>
          <th className="right">after</th>
        </tr>
      </thead>
      <tbody>
        {events.map((event, index) => {
          const before = events[index - 1]?.time;
          return (
            <tr key={index}>
              <td>{words(event.state)}</td>
              <td className="secondary">{words(event.phase ?? '')}</td>
              <td>
                <Time at={event.time} />
              </td>
              <td className="right">
                {before === undefined ? '' : duration(Date.parse(event.time) - Date.parse(before))}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Output({ operation, job }: { operation: string; job: JobDetails }) {
  const [wrap, setWrap] = useState(true);
  const output = useLive('any', ['stderr', operation, job.id], () => getStderr(operation, job.id));
  return (
    <Async query={output}>
      {text => (
        <>
          <div className="toolbar">
            <Switch checked={wrap} onUpdate={setWrap}>
              Wrap lines
            </Switch>
            <div className="toolbar__space" />
            <Copy text={text} what="output" />
          </div>
          {text === '' ? (
            <p className="secondary">
              {job.state === 'running'
                ? 'It has printed nothing yet.'
                : 'It printed nothing, or its output was not kept.'}
            </p>
          ) : (
            <pre className={wrap ? 'pre' : 'pre pre_unwrapped'} tabIndex={0}>
              {text}
            </pre>
          )}
        </>
      )}
    </Async>
  );
}
