/** Jobs of an operation. */

import { ArrowLeft, ArrowRight } from '@gravity-ui/icons';
import { Button, Icon, Select, Switch, TextInput } from '@gravity-ui/uikit';
import { Link } from 'wouter';
import { innermost } from '../../api/errors';
import { useLive } from '../../api/live';
import { listJobs, type Counts, type Job, type Operation } from '../../api/operations';
import { Async } from '../../components/Async';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Elapsed, Mark, State, Time } from '../../components/Parts';
import { bytes, count, shortId, words } from '../../model/format';
import { links } from '../../model/links';
import { parseSort, printSort, useUrlState } from '../../model/urlState';
import { JobMenu } from './JobActions';

const PAGE = 100;

export function Jobs({ operation }: { operation: Operation }) {
  const [url, change] = useUrlState();
  const of = (name: string) => url.get(name) ?? undefined;
  const sort = parseSort(url.get('sort')) ?? { by: 'start_time', down: true };
  const offset = Number(url.get('offset') ?? 0);
  const query = {
    state: of('state'),
    task_name: of('task'),
    address: of('address'),
    with_stderr: url.has('stderr') ? true : undefined,
    sort_field: sort.by,
    sort_order: sort.down ? ('descending' as const) : ('ascending' as const),
    limit: PAGE,
    offset,
  };
  const jobs = useLive(['jobs', operation.id, query], () => listJobs(operation.id, query));
  const put = (name: string) => (value: string | undefined) => change({ [name]: value, offset: undefined });
  const tasks = operation.progress?.tasks?.map(task => task.task_name) ?? [];
  const total = sumOf(jobs.data?.state_counts ?? {}, query.state);
  return (
    <>
      <div className="toolbar">
        <Choice
          label="State:"
          value={url.get('state')}
          counts={jobs.data?.state_counts ?? {}}
          onUpdate={put('state')}
        />
        {tasks.length > 1 && (
          <Choice
            label="Task:"
            value={url.get('task')}
            counts={Object.fromEntries(tasks.map(task => [task, undefined]))}
            onUpdate={put('task')}
          />
        )}
        <TextInput
          className="toolbar__filter"
          value={url.get('address') ?? ''}
          onUpdate={put('address')}
          placeholder="Node"
          hasClear
          controlProps={{ 'aria-label': 'Filter jobs by node' }}
        />
        <Switch checked={url.has('stderr')} onUpdate={on => put('stderr')(on ? 'true' : undefined)}>
          With output
        </Switch>
      </div>
      <Async query={jobs}>
        {data => (
          <>
            <DataTable
              label="Jobs"
              columns={columnsFor(operation)}
              rows={data.jobs}
              rowKey={job => job.id}
              sort={sort}
              onSort={next =>
                change({ sort: next === undefined ? undefined : printSort(next), offset: undefined })
              }
              empty={
                query.state === undefined && query.address === undefined
                  ? 'No job of it has been started yet.'
                  : 'No job is as you look for.'
              }
            />
            {(offset > 0 || data.continuation_token !== undefined) && (
              <div className="toolbar">
                <Button
                  view="outlined"
                  disabled={offset === 0}
                  onClick={() => change({ offset: offset > PAGE ? String(offset - PAGE) : undefined })}
                >
                  <Icon data={ArrowLeft} />
                  Back
                </Button>
                <Button
                  view="outlined"
                  disabled={data.continuation_token === undefined}
                  onClick={() => change({ offset: String(offset + PAGE) })}
                >
                  Further
                  <Icon data={ArrowRight} />
                </Button>
                <span className="secondary numbers">
                  {count(offset + 1)} to {count(offset + data.jobs.length)}
                  {total > 0 && ` of ${count(total)}`}
                </span>
              </div>
            )}
          </>
        )}
      </Async>
    </>
  );
}

const sumOf = (counts: Counts, state: string | undefined): number =>
  state === undefined ? Object.values(counts).reduce((sum, n) => sum + n, 0) : (counts[state] ?? 0);

function Choice({
  label,
  value,
  counts,
  onUpdate,
}: {
  label: string;
  value: string | null;
  counts: Record<string, number | undefined>;
  onUpdate: (value: string | undefined) => void;
}) {
  const names = Object.keys(counts);
  const all = value !== null && !names.includes(value) ? [value, ...names] : names;
  return (
    <Select
      aria-label={label.replace(':', '')}
      label={label}
      value={value === null ? [] : [value]}
      placeholder="all"
      hasClear
      options={all.map(name => ({
        value: name,
        content: counts[name] === undefined ? name : `${name} (${count(counts[name])})`,
      }))}
      onUpdate={([chosen]) => onUpdate(chosen)}
    />
  );
}

function columnsFor(operation: Operation): TableColumn<Job>[] {
  const href = (job: Job) => links.job(operation.id, job.id);
  return [
    {
      id: 'id',
      title: 'Job',
      width: 180,
      cell: job => (
        <>
          <Link href={href(job)} className="mono" title={job.id}>
            {shortId(job.id)}
          </Link>
          {job.job_cookie !== undefined && <span className="secondary">#{job.job_cookie}</span>}
          <span className="row-menu">
            <JobMenu job={job} />
          </span>
        </>
      ),
    },
    {
      id: 'state',
      title: 'State',
      width: 220,
      cell: job => (
        <>
          <State state={job.state} />
          {reasonOf(job) !== '' && <Mark title={job.error?.message ?? ''}>{reasonOf(job)}</Mark>}
        </>
      ),
    },
    {
      id: 'task_name',
      title: 'Task',
      width: 120,
      cell: job => <span className="clip">{job.task_name}</span>,
    },
    {
      id: 'address',
      title: 'Node',
      width: 160,
      cell: job =>
        job.address === undefined ? null : (
          <Link href={links.node(job.address)} className="clip" title={job.address}>
            {job.address}
          </Link>
        ),
    },
    { id: 'start_time', title: 'Started', width: 150, cell: job => <Time at={job.start_time} /> },
    { id: 'finish_time', title: 'Ended', width: 150, cell: job => <Time at={job.finish_time} /> },
    {
      id: 'duration',
      title: 'Duration',
      width: 110,
      numeric: true,
      cell: job => <Elapsed start={job.start_time} end={job.finish_time} />,
    },
    {
      id: 'stderr',
      title: 'Output',
      width: 100,
      numeric: true,
      sortable: false,
      cell: job =>
        job.stderr_size === undefined ? null : (
          <Link href={links.job(operation.id, job.id, 'output')}>{bytes(job.stderr_size)}</Link>
        ),
    },
    {
      id: 'error',
      title: 'Error',
      width: 280,
      sortable: false,
      cell: job => (
        <span className="clip bad" title={innermost(job.error)}>
          {job.state === 'failed' ? innermost(job.error) : ''}
        </span>
      ),
    },
  ];
}

const reasonOf = (job: Job): string =>
  words(job.abort_reason ?? job.interruption_info?.interruption_reason ?? '');
