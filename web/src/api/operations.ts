/** Questions about operations and jobs, and what can be done to them. */

import { beginning, call, getOr, question, text, type Json, type Beginning } from './client';
import type { ErrorTree } from './errors';
import { orNull } from './history';
import type { Ace } from '../model/acl';
import type { Resources } from '../model/resources';

export interface JobCounts {
  total: number;
  running: number;
  completed: number;
  pending: number;
  failed: number;
  aborted: number;
  lost: number;
}

export interface TreeOptions {
  pool?: string;
  weight?: number;
  resource_limits?: Resources;
}

export interface OperationSummary {
  id: string;
  type: string;
  state: string;
  authenticated_user: string;
  start_time: string;
  finish_time?: string;
  suspended: boolean;
  brief_spec?: {
    title?: string;
    alias?: string;
    pool?: string;
    /** The first of them; attributes say how many there are. */
    input_table_paths?: Json;
    output_table_paths?: Json;
    tasks?: Record<string, { command?: string; job_count?: number }>;
  };
  brief_progress?: { jobs?: JobCounts };
  runtime_parameters?: {
    scheduling_options_per_pool_tree?: Record<string, TreeOptions>;
    annotations?: Record<string, Json>;
    acl?: Ace[];
  };
}

export interface Listing {
  operations: OperationSummary[];
  incomplete: boolean;
  pool_tree_counts?: Counts;
  pool_counts?: Counts;
  user_counts?: Counts;
  state_counts?: Counts;
  type_counts?: Counts;
  failed_jobs_count?: number;
}

export type Counts = Record<string, number>;

export interface ListingQuery {
  filter?: string | undefined;
  user?: string | undefined;
  pool_tree?: string | undefined;
  pool?: string | undefined;
  state?: string | undefined;
  type?: string | undefined;
  with_failed_jobs?: boolean | undefined;
  from_time?: string | undefined;
  to_time?: string | undefined;
  cursor_time?: string | undefined;
  cursor_direction?: 'past' | 'future' | undefined;
  /** Operations that this subject may look into, or manage. */
  access?: { subject: string; permissions: string[] } | undefined;
  limit: number;
}

const SUMMARY = [
  'id',
  'type',
  'state',
  'authenticated_user',
  'start_time',
  'finish_time',
  'suspended',
  'brief_spec',
  'brief_progress',
  'runtime_parameters',
];

export const listOperations = (query: ListingQuery): Promise<Listing> =>
  call('list_operations', { ...withoutUndefined(query), attributes: SUMMARY, include_archive: true });

const withoutUndefined = (query: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));

/** Counter of jobs with the reasons of their ends. */
export interface DetailedCounts {
  total: number;
  running: number;
  pending: number;
  failed: number;
  lost: number;
  completed: { total: number; interrupted: Counts; 'non-interrupted': Counts };
  aborted: { total: number; scheduled: Counts; non_scheduled: Counts };
}

export interface Task {
  task_name: string;
  /** Kind of its jobs, e.g. `vanilla`. */
  job_type: string;
  job_counter: DetailedCounts;
  user_job_memory_reserve_factor?: number;
  user_job_memory_digest?: MemoryDigest;
  job_proxy_memory_digest?: MemoryDigest;
  user_job_options?: { cpu_limit?: number; gpu_limit?: number; memory_limit?: number };
  min_needed_resources?: Resources;
}

/** What ended jobs of a task used of their memory limit, and what new ones get reserved for it. */
export interface MemoryDigest {
  samples: number;
  /** So many of the jobs should find what they need: 0 to 1. */
  quantile: number;
  /** Factors of the memory limit, as all below. */
  value: number;
  lower_bound: number;
  default_value: number;
  upper_bound: number;
  histogram?: { lower: number; upper: number; count: number }[];
}

export interface Summary {
  sum: number;
  count: number;
  min: number;
  max: number;
  last?: number;
}

export interface TaggedSummary {
  summary: Summary;
  tags: { job_state?: string; job_type?: string; pool_tree?: string };
}

export interface StatisticsTree {
  [name: string]: StatisticsTree | TaggedSummary[];
}

export interface Event {
  time: string;
  state: string;
  phase?: string;
}

export interface Operation extends OperationSummary {
  progress?: { tasks?: Task[]; job_statistics_v2?: StatisticsTree; build_time?: string };
  result?: { error?: ErrorTree };
  alerts?: Record<string, ErrorTree>;
  alert_events?: { time: string; alert_type: string; error: ErrorTree }[];
  events?: Event[];
}

const DETAILS = [...SUMMARY, 'progress', 'result', 'alerts', 'alert_events', 'events'];

/** An alias begins with a star. */
const named = (idOrAlias: string) =>
  idOrAlias.startsWith('*') ? { operation_alias: idOrAlias } : { operation_id: idOrAlias };

export const getOperation = (idOrAlias: string): Promise<Operation> =>
  call('get_operation', { ...named(idOrAlias), attributes: DETAILS, include_runtime: true });

export interface Specifications {
  provided_spec: Json;
  full_spec: Json;
  unrecognized_spec: Record<string, Json>;
}

export const getSpecifications = (id: string): Promise<Specifications> =>
  call('get_operation', { ...named(id), attributes: ['provided_spec', 'full_spec', 'unrecognized_spec'] });

export const getAttributes = (id: string): Promise<Json> => call('get_operation', named(id));

export interface OperationExplanation {
  time: string;
  state?: string;
  text: string[];
  trees: Record<string, TreeExplanation>;
}

export interface TreeExplanation {
  pool: string;
  verdict: { reason: string };
  numbers: {
    running: number;
    wanted: number;
    leaving: number;
    fair_share: number;
    usage_share: number;
    demand_share: number;
    non_preemptible_job_count: number;
    aggressively_preemptible_job_count: number;
    preemptible_job_count: number;
  };
  starvation?: { below_since?: string; starving_since?: string; aggressively: boolean; timeout: number };
  nodes?: {
    total: number;
    ready: number;
    waiting: number;
    offline: number;
    preemptible: number;
    disabled: number;
    no_spare: number;
    by_reason: Counts;
    short: Counts;
  };
  losses: Preemption[];
  loss_count: number;
}

export const explainOperation = (id: string): Promise<OperationExplanation | null> =>
  getOr<OperationExplanation | null>(`//sys/scheduler/orchid/scheduler/operation_explanations/${id}`, null);

export interface Preemption {
  time: string;
  pool_tree: string;
  node: string;
  operation_id: string;
  pool: string;
  job_id?: string;
  allocation_id: string;
  resources: Resources;
  group: string;
  level: number;
  timeout: number;
  preemption_kind: string;
  stage?: string | null;
  preemption_reason: string;
  properly_starving?: boolean | null;
  preempted_for?: { operation_id: string; allocation_id: string } | null;
}

/** Newest first. */
export async function preemptions(tree: string): Promise<Preemption[]> {
  const log = await getOr<Preemption[]>(
    `//sys/scheduler/orchid/scheduler/pool_trees/${tree}/preemption_log`,
    [],
  );
  return [...log].reverse();
}

export const start = (type: string, spec: Json): Promise<{ operation_id: string }> =>
  call('start_operation', { operation_type: type, spec });
export const abort = (id: string, message: string): Promise<unknown> =>
  call('abort_operation', { operation_id: id, ...(message === '' ? {} : { abort_message: message }) });
export const suspend = (id: string, abortJobs: boolean): Promise<unknown> =>
  call('suspend_operation', { operation_id: id, abort_running_jobs: abortJobs });
export const resume = (id: string): Promise<unknown> => call('resume_operation', { operation_id: id });
export const complete = (id: string): Promise<unknown> => call('complete_operation', { operation_id: id });
export const updateParameters = (id: string, options: Record<string, TreeOptions>): Promise<unknown> =>
  call('update_operation_parameters', {
    operation_id: id,
    parameters: { scheduling_options_per_pool_tree: options },
  });

export const setOperationAcl = (id: string, acl: Ace[]): Promise<unknown> =>
  call('update_operation_parameters', { operation_id: id, parameters: { acl } });

export interface Job {
  id: string;
  operation_id?: string;
  type: string;
  state: string;
  address?: string;
  task_name?: string;
  pool?: string;
  pool_tree?: string;
  job_cookie?: number;
  start_time?: string;
  finish_time?: string;
  progress?: number;
  stderr_size?: number;
  /** Bytes of what it read last before it failed. */
  fail_context_size?: number;
  error?: ErrorTree;
  abort_reason?: string;
  interruption_info?: { interruption_reason?: string; preempted_for?: { operation_id?: string } };
  operation_incarnation?: string;
  has_competitors?: boolean;
  /** The slow job of which there is a copy. */
  job_competition_id?: string;
  /** By paths like `user_job/max_memory`. */
  brief_statistics?: Record<string, Json>;
  events?: Event[];
  exec_attributes?: Record<string, Json>;
}

export interface JobDetails extends Job {
  statistics?: JobStatistics;
  resource_usage?: Resources;
}

export interface JobStatistics {
  [name: string]: JobStatistics | Summary;
}

export interface JobListing {
  jobs: Job[];
  type_counts: Counts;
  state_counts: Counts;
  scheduler_job_count?: number;
  controller_agent_job_count?: number;
  archive_job_count?: number | null;
  continuation_token?: string;
}

export interface JobQuery {
  state?: string | undefined;
  type?: string | undefined;
  task_name?: string | undefined;
  address?: string | undefined;
  job_id?: string | undefined;
  operation_incarnation?: string | undefined;
  with_stderr?: boolean | undefined;
  with_fail_context?: boolean | undefined;
  with_interruption_info?: boolean | undefined;
  with_spec?: boolean | undefined;
  with_competitors?: boolean | undefined;
  job_competition_id?: string | undefined;
  with_monitoring_descriptor?: boolean | undefined;
  monitoring_descriptor?: string | undefined;
  sort_field?: string | undefined;
  sort_order?: 'ascending' | 'descending' | undefined;
  limit: number;
  offset: number;
}

export const listJobs = (operation: string, query: JobQuery): Promise<JobListing> =>
  call('list_jobs', { operation_id: operation, ...withoutUndefined(query) });

export const getJob = (operation: string, job: string): Promise<JobDetails> =>
  call('get_job', { operation_id: operation, job_id: job });

/** What is counted, watched and reserved for a running job, and why. */
export interface JobExplanation {
  state: string;
  accounted: Resources;
  cpu: {
    hard_limit: number;
    enable_cpu_reclaim: boolean;
    options: { relative_upper_bound: number; relative_lower_bound: number };
    /** Absent until it has measured. */
    monitor?: { limit: number; smoothed: number; ratio: number; votes: string };
  };
  memory: {
    memory_limit: number;
    overdrafted: boolean;
    user_job: MemoryOfProcesses;
    job_proxy: MemoryOfProcesses;
    new_job_request: number;
  };
  text: string[];
}

export interface MemoryOfProcesses {
  reserve: number;
  factor: number;
  digest: MemoryDigest;
  peak?: number;
}

/** Only while the job runs; nothing afterwards. */
export const explainJob = (job: string): Promise<JobExplanation | null> =>
  orNull(question<JobExplanation>('job_explanation', { job_id: job }));

export const getStderr = (operation: string, job: string): Promise<string> =>
  text('get_job_stderr', { operation_id: operation, job_id: job });

/** What a job was given to read, or was reading when it failed. */
export type RowsOfJob = 'input' | 'fail_context';

/** Where they are as a file. */
export const rowsUrl = (operation: string, job: string, rows: RowsOfJob): string =>
  `/api/v4/get_job_${rows}?${new URLSearchParams({ operation_id: operation, job_id: job })}`;

/** More nobody reads on a page. */
const ROWS_SHOWN = 256 * 1024;

export const beginningOfRows = (operation: string, job: string, rows: RowsOfJob): Promise<Beginning> =>
  beginning(rowsUrl(operation, job, rows), ROWS_SHOWN);

/** With a time-out the job is asked to stop first. */
export const abortJob = (job: string, interruptMs?: number): Promise<unknown> =>
  call('abort_job', {
    job_id: job,
    ...(interruptMs === undefined ? {} : { interrupt_timeout: interruptMs }),
  });
export const abandonJob = (job: string): Promise<unknown> => call('abandon_job', { job_id: job });
