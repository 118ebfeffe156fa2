/** Jobs of an operation. */

import { ArrowLeft, ArrowRight } from '@gravity-ui/icons';
import { Button, Icon, Select, TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import { Link } from 'wouter';
import { innermost } from '../../api/errors';
import { useLive } from '../../api/live';
import { listJobs, type Counts, type Job, type Operation } from '../../api/operations';
import { Allowed } from '../../api/session-context';
import { Async } from '../../components/Async';
import { UsedBar } from '../../components/Bar';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Elapsed, Mark, State, Time } from '../../components/Parts';
import { useSteadyNames } from '../../components/useSteadyNames';
import { bytes, count, number, percent, shortId, words } from '../../model/format';
import { cpuOf, memoryOf, type Used } from '../../model/jobUsage';
import { links } from '../../model/links';
import { parseSort, printSort, useUrlState } from '../../model/urlState';
import { JobMenu } from './JobActions';
import { has } from './JobRows';

const PAGE = 100;

/** Names of the filters in the address. */
const FILTERS = ['state', 'type', 'task', 'address', 'job', 'incarnation', 'descriptor', 'with'];

/** What a job may have. */
const ATTRIBUTES: Record<string, string> = {
  stderr: 'output',
  fail_context: 'input at the failure',
  interruption_info: 'an interruption',
  spec: 'a specification',
  competitors: 'competitors',
  monitoring_descriptor: 'a monitoring descriptor',
};

export function Jobs({ operation }: { operation: Operation }) {
  const [url, change] = useUrlState();
  const of = (name: string) => url.get(name) ?? undefined;
  const attributes = (url.get('with') ?? '').split(',').filter(name => name in ATTRIBUTES);
  const asked = (name: string) => (attributes.includes(name) ? true : undefined);
  const sort = parseSort(url.get('sort')) ?? { by: 'start_time', down: true };
  const offset = Number(url.get('offset') ?? 0);
  const query = {
    state: of('state'),
    type: of('type'),
    task_name: of('task'),
    address: of('address'),
    job_id: of('job'),
    operation_incarnation: of('incarnation'),
    with_stderr: asked('stderr'),
    with_fail_context: asked('fail_context'),
    with_interruption_info: asked('interruption_info'),
    with_spec: asked('spec'),
    with_competitors: asked('competitors'),
    with_monitoring_descriptor: asked('monitoring_descriptor'),
    monitoring_descriptor: of('descriptor'),
    sort_field: sort.by,
    sort_order: sort.down ? ('descending' as const) : ('ascending' as const),
    limit: PAGE,
    offset,
  };
  const jobs = useLive(`operation/${operation.id}`, ['jobs', operation.id, query], () =>
    listJobs(operation.id, query),
  );
  const put = (name: string) => (value: string | undefined) => change({ [name]: value, offset: undefined });
  const tasks = operation.progress?.tasks?.map(task => task.task_name) ?? [];
  const incarnations = useSeen([
    of('incarnation'),
    ...(jobs.data?.jobs ?? []).map(job => job.operation_incarnation),
  ]);
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
        <Choice
          label="Type:"
          value={url.get('type')}
          counts={jobs.data?.type_counts ?? {}}
          onUpdate={put('type')}
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
        <TextInput
          className="toolbar__filter"
          value={url.get('job') ?? ''}
          onUpdate={put('job')}
          placeholder="Job: a part of its id"
          hasClear
          controlProps={{ 'aria-label': 'Filter jobs by id' }}
        />
        <Select
          multiple
          aria-label="With"
          label="With:"
          value={attributes}
          placeholder="anything"
          hasClear
          options={Object.entries(ATTRIBUTES).map(([value, content]) => ({ value, content }))}
          onUpdate={chosen => put('with')(chosen.join(',') || undefined)}
        />
        {incarnations.length > 1 && (
          <Choice
            label="Incarnation:"
            value={url.get('incarnation')}
            counts={Object.fromEntries(incarnations.map(name => [name, undefined]))}
            onUpdate={put('incarnation')}
          />
        )}
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
                FILTERS.every(name => !url.has(name))
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

/** Names that were there once: a filter that hides the others shall not take away the choice of them. */
function useSeen(names: (string | undefined)[]): string[] {
  const [seen, setSeen] = useState<string[]>([]);
  const all = [...new Set([...seen, ...names.filter(name => name !== undefined)])];
  if (all.length > seen.length) setSeen(all);
  return all;
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
  const [shown, onOpen] = useSteadyNames(all);
  return (
    <Select
      aria-label={label.replace(':', '')}
      label={label}
      value={value === null ? [] : [value]}
      placeholder="all"
      hasClear
      onOpenChange={onOpen}
      options={shown.map(name => ({
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
            <Allowed to="manage" operation={operation.id}>
              <JobMenu job={job} />
            </Allowed>
          </span>
        </>
      ),
    },
    {
      id: 'state',
      title: 'State',
      width: 210,
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
      width: 130,
      cell: job =>
        job.address === undefined ? null : (
          <Link href={links.node(job.address)} className="clip" title={job.address}>
            {job.address}
          </Link>
        ),
    },
    {
      id: 'cpu',
      title: 'CPU',
      hint: 'Used, smoothed; line: guaranteed now; end of the bar: ordered',
      width: 190,
      sortable: false,
      cell: job => <Amount of={cpuOf(job)} text={number} unit="cores" />,
    },
    {
      id: 'memory',
      title: 'Memory',
      hint: 'Dark: used; light: peak; line: reserved; end of the bar: limit',
      width: 230,
      sortable: false,
      cell: job => <Amount of={memoryOf(job)} text={bytes} unit="" />,
    },
    {
      id: 'duration',
      title: 'Duration',
      width: 110,
      numeric: true,
      cell: job => <Elapsed start={job.start_time} end={job.finish_time} />,
    },
    {
      id: 'start_time',
      title: 'Started',
      width: 150,
      newestFirst: true,
      cell: job => <Time at={job.start_time} />,
    },
    {
      id: 'finish_time',
      title: 'Ended',
      width: 150,
      newestFirst: true,
      cell: job => <Time at={job.finish_time} />,
    },
    {
      id: 'type',
      title: 'Type',
      width: 90,
      cell: job => <span className="clip">{words(job.type)}</span>,
    },
    {
      id: 'progress',
      title: 'Progress',
      hint: 'How much of its input it has read, as far as jobs of its kind tell',
      width: 100,
      numeric: true,
      cell: job => (job.progress === undefined ? null : percent(job.progress)),
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
      id: 'input',
      title: 'Input',
      hint: 'The rows that it was given; of a failed one also those that it was reading last',
      width: 170,
      sortable: false,
      cell: job => (
        <>
          {has(job, 'input') && <Link href={links.job(operation.id, job.id, 'input')}>rows</Link>}
          {job.fail_context_size !== undefined && (
            <>
              {', '}
              <Link href={links.job(operation.id, job.id, 'fail_context')}>
                {bytes(job.fail_context_size)} at the failure
              </Link>
            </>
          )}
        </>
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

function Amount({ of, text, unit }: { of: Used | undefined; text: (value: number) => string; unit: string }) {
  if (of === undefined) return null;
  const { used, peak, promised, limit } = of;
  const part = (value: number) => (limit === 0 ? 0 : value / limit);
  const label = [
    `used ${text(used)}`,
    peak !== used && `peak ${text(peak)}`,
    promised !== undefined && `promised ${text(promised)}`,
    `at most ${text(limit)} ${unit}`.trim(),
  ].filter(words => words !== false);
  return (
    <>
      <UsedBar
        used={part(used)}
        peak={part(peak)}
        promised={promised === undefined ? undefined : part(promised)}
        label={label.join(', ')}
      />
      <span className="numbers">
        {text(used)} <span className="secondary">of {text(limit)}</span>
      </span>
    </>
  );
}

const reasonOf = (job: Job): string =>
  words(job.abort_reason ?? job.interruption_info?.interruption_reason ?? '');
