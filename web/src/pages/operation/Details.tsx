/** The first look at an operation: errors, alerts, where it stands, tasks, phases. */

import { Link } from 'wouter';
import { innermost, Refusal } from '../../api/errors';
import { listJobs, type DetailedCounts, type Operation, type Task } from '../../api/operations';
import { operationElement } from '../../api/scheduling';
import { useLive } from '../../api/live';
import { ShareBar, ShareLegend } from '../../components/Bar';
import { Histogram } from '../../components/Histogram';
import { ErrorView } from '../../components/ErrorView';
import { Card, Facts, PoolLink, Time } from '../../components/Parts';
import { barOf, placeInFifo, unschedulable } from '../../model/columns';
import { bytes, count, number, percent, shortId, words } from '../../model/format';
import { links } from '../../model/links';
import { endsOf, isFinished, placesOf } from '../../model/operations';
import type { OperationElement } from '../../model/pools';
import { resourcesInWords, resourceTitle } from '../../model/resources';
import { OperationAlerts } from './OperationAlerts';
import { Phases } from './Phases';
import { SpecSummary } from './SpecSummary';

export function Details({ operation }: { operation: Operation }) {
  const error = operation.result?.error;
  const annotations = Object.entries(operation.runtime_parameters?.annotations ?? {});
  return (
    <>
      {error !== undefined && error.code !== 0 && <ErrorView error={new Refusal(error)} />}
      <OperationAlerts operation={operation} />
      <Card title="Tasks">
        <Tasks operation={operation} tasks={operation.progress?.tasks ?? []} />
      </Card>
      <Digests tasks={operation.progress?.tasks ?? []} />
      {(operation.brief_progress?.jobs?.failed ?? 0) > 0 && <FailedJobs id={operation.id} />}
      {!isFinished(operation.state) &&
        placesOf(operation).map(({ tree }) => <Runtime key={tree} tree={tree} id={operation.id} />)}
      <SpecSummary id={operation.id} />
      <div className="cards cards_wide">
        <Card title="Events">
          <Phases operation={operation} />
        </Card>
        {annotations.length > 0 && (
          <Card title="Annotations">
            <Facts
              items={annotations.map(([name, value]) => [
                name,
                typeof value === 'string' ? value : JSON.stringify(value),
              ])}
            />
          </Card>
        )}
      </div>
    </>
  );
}

function Tasks({ operation, tasks }: { operation: Operation; tasks: Task[] }) {
  if (tasks.length === 0) return <p className="secondary">It has not got so far as to have tasks.</p>;
  return (
    <div className="sheet-box" tabIndex={0}>
      <table className="sheet">
        <thead>
          <tr>
            <th>Task</th>
            <th>Type</th>
            <th>Each job</th>
            {COLUMNS.map(([title]) => (
              <th key={title} className="right">
                {title}
              </th>
            ))}
            <th>Why they ended early</th>
          </tr>
        </thead>
        <tbody>
          {tasks.map(task => (
            <tr key={task.task_name}>
              <td>
                {task.task_name}
                <div className="secondary mono clip task-command" title={commandOf(operation, task)}>
                  {commandOf(operation, task)}
                </div>
              </td>
              <td className="secondary">{words(task.job_type)}</td>
              <td className="secondary">
                {each(task)}
                <div>{reserve(task)}</div>
              </td>
              {COLUMNS.map(([title, of, state]) => (
                <td key={title} className="right">
                  <Count operation={operation} task={task} value={of(task.job_counter)} state={state} />
                </td>
              ))}
              <td className="secondary">
                <Reasons counts={task.job_counter} task={task.task_name} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What is learned of the memory of each task; so many, that the page stays one. */
const DIGESTS = 12;

function Digests({ tasks }: { tasks: Task[] }) {
  const learned = tasks.filter(task => (task.user_job_memory_digest?.samples ?? 0) > 0).slice(0, DIGESTS);
  if (learned.length === 0) return null;
  return (
    <div className="cards">
      {learned.map(
        ({ task_name, user_job_memory_digest }) =>
          user_job_memory_digest !== undefined && (
            <Card key={task_name} title={`Memory that jobs of ${task_name} used`}>
              <Histogram digest={user_job_memory_digest} />
            </Card>
          ),
      )}
    </div>
  );
}

/** The newest failures, with what they printed. */
function FailedJobs({ id }: { id: string }) {
  const { data } = useLive(`operation/${id}`, ['failed jobs', id], () =>
    listJobs(id, {
      state: 'failed',
      sort_field: 'start_time',
      sort_order: 'descending',
      limit: 5,
      offset: 0,
    }),
  );
  if (data === undefined || data.jobs.length === 0) return null;
  return (
    <Card title="Newest failed jobs">
      <div className="sheet-box" tabIndex={0}>
        <table className="sheet">
          <tbody>
            {data.jobs.map(job => (
              <tr key={job.id}>
                <td>
                  <Link href={links.job(id, job.id)} className="mono">
                    {shortId(job.id)}
                  </Link>
                </td>
                <td className="secondary">{job.task_name}</td>
                <td>
                  <Time at={job.finish_time} />
                </td>
                <td>
                  <Link href={links.job(id, job.id, 'output')}>output</Link>
                </td>
                <td className="bad wide">{innermost(job.error)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

const COLUMNS: [string, (counts: DetailedCounts) => number, string | undefined][] = [
  ['Total', counts => counts.total, undefined],
  ['Pending', counts => counts.pending, undefined],
  ['Running', counts => counts.running, 'running'],
  ['Completed', counts => counts.completed.total, 'completed'],
  ['Failed', counts => counts.failed, 'failed'],
  ['Aborted', counts => counts.aborted.total, 'aborted'],
  ['Lost', counts => counts.lost, undefined],
];

/** Leads to these jobs. */
function Count({
  operation,
  task,
  value,
  state,
}: {
  operation: Operation;
  task: Task;
  value: number;
  state: string | undefined;
}) {
  if (value === 0) return <span className="secondary">0</span>;
  if (state === undefined) return <>{count(value)}</>;
  return (
    <Link href={links.operation(operation.id, 'jobs', { state, task: task.task_name })}>{count(value)}</Link>
  );
}

const commandOf = (operation: Operation, task: Task): string =>
  operation.brief_spec?.tasks?.[task.task_name]?.command ?? '';

function each(task: Task): string {
  const { cpu_limit, gpu_limit, memory_limit } = task.user_job_options ?? {};
  return [
    cpu_limit !== undefined && `${number(cpu_limit)} CPU`,
    gpu_limit !== undefined && gpu_limit > 0 && `${number(gpu_limit)} GPU`,
    memory_limit !== undefined && bytes(memory_limit),
  ]
    .filter(part => part !== false)
    .join(', ');
}

const reserve = (task: Task): string =>
  task.user_job_memory_reserve_factor === undefined
    ? ''
    : `reserves ${percent(task.user_job_memory_reserve_factor)} of its memory`;

/** Why jobs were aborted or interrupted: how many of which kind, and opened, each reason with its count. */
function Reasons({ counts, task }: { counts: DetailedCounts; task: string }) {
  const kinds = endsOf(counts);
  if (kinds.length === 0) return null;
  return (
    <details className="reasons">
      <summary aria-label={`Why jobs of ${task} ended early`}>
        {kinds.map(({ kind, total }) => `${kind} ${count(total)}`).join(', ')}
      </summary>
      <table className="sheet sheet_inner">
        <tbody>
          {kinds.flatMap(({ kind, reasons }) =>
            reasons.map(([name, n]) => (
              <tr key={`${kind} ${name}`}>
                <td>{kind}</td>
                <td>{words(name)}</td>
                <td className="right">{count(n)}</td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </details>
  );
}

function Runtime({ tree, id }: { tree: string; id: string }) {
  const { data } = useLive(['pools', `operation/${id}`], ['element', tree, id], () =>
    operationElement(tree, id),
  );
  if (data === undefined || data === null) return null;
  return (
    <Card title={`In tree ${tree}`}>
      <ShareBar {...barOf(data, undefined, {})} scale={scaleOf(data)} tall />
      <div className="legend-row">
        <ShareLegend />
      </div>
      <Standing tree={tree} element={data} />
    </Card>
  );
}

const scaleOf = (e: OperationElement): number =>
  Math.min(1, Math.max(0.05, e.usage_ratio ?? 0, e.fair_share_ratio ?? 0, Math.min(e.demand_ratio ?? 0, 1)));

function Standing({ tree, element }: { tree: string; element: OperationElement }) {
  return (
    <div className="facts-columns">
      <Facts
        items={[
          ['Pool', element.pool !== undefined && <PoolLink tree={tree} pool={element.pool} />],
          ['Weight', number(element.weight)],
          ['FIFO position', placeInFifo(element) === undefined ? undefined : String(placeInFifo(element))],
          ['Dominant resource', resourceTitle(element.dominant_resource ?? '')],
        ]}
      />
      <Facts
        items={[
          ['Usage', `${percent(element.usage_ratio)} (${resourcesInWords(element.resource_usage)})`],
          ['Fair share', percent(element.fair_share_ratio)],
          ['Demand', `${percent(element.demand_ratio)} (${resourcesInWords(element.resource_demand)})`],
        ]}
      />
      <Facts
        items={[
          ['Status', words(element.scheduling_status ?? '')],
          ['Starvation', words(element.starvation_status ?? '')],
          ['Starving since', element.starving_since != null && <Time at={element.starving_since} />],
          ['Not scheduled', unschedulable(element)],
          ['Gang', element.is_gang === true && 'all of its jobs or none'],
          ['Preemptible jobs', count(element.preemptible_job_count)],
          ['Aggressively preemptible', count(element.aggressively_preemptible_job_count)],
          ['Never preempted', count(element.non_preemptible_job_count)],
          ['Segment', words(element.scheduling_segment ?? '')],
        ]}
      />
    </div>
  );
}
