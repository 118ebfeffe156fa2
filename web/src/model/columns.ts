/**
 * The sets of columns of the pool table. A column knows its cell as text and as a number to sort by; bars and
 * links are up to the table.
 */

import { count, duration, elapsed, number, percent, seconds, words } from './format';
import type { Element, OperationElement, Pool } from './pools';
import { amount, amountOf, dominant, ratio, resourceTitle, type Resource, type Resources } from './resources';

export interface Context {
  /** Resources of the whole tree. */
  total: Resources;
  /** Amounts instead of shares. */
  absolute: boolean;
}

export type Any = Element & Partial<Pool> & Partial<OperationElement>;

export interface Column {
  id: string;
  title: string;
  /** Shown on the pointer's rest over the head. */
  hint?: string;
  width: number;
  /** Numbers stand right. */
  numeric?: boolean;
  value: (element: Any, context: Context) => number | string | undefined;
  text: (element: Any, context: Context) => string;
  /** Pools have none: left out as long as no operation is shown. */
  ofOperations?: boolean;
  /** Drawn instead of the text. */
  draw?: 'bar' | 'running' | 'total' | 'volume' | 'badge';
}

const textual = (
  id: string,
  title: string,
  width: number,
  text: (e: Any) => string,
  more?: Partial<Column>,
): Column => ({
  id,
  title,
  width,
  value: text,
  text,
  ...more,
});

const numeric = (
  id: string,
  title: string,
  width: number,
  value: (e: Any, c: Context) => number | undefined,
  shown: (value: number) => string,
  more?: Partial<Column>,
): Column => ({
  id,
  title,
  width,
  numeric: true,
  value,
  text: (e, c) => {
    const v = value(e, c);
    return v === undefined ? '' : shown(v);
  },
  ...more,
});

const weight = numeric('weight', 'Weight', 68, e => e.weight, number);

/** A share by its dominant resource, or the amount of that resource. */
const dominantShare = (
  id: string,
  title: string,
  share: (e: Any) => number | undefined,
  hint: string,
): Column => ({
  id,
  title,
  hint,
  width: 92,
  numeric: true,
  value: share,
  text: (e, c) => {
    const value = share(e);
    if (value === undefined) return '';
    const resource = e.dominant_resource ?? 'cpu';
    return c.absolute ? amount(resource, value * amountOf(c.total, resource)) : percent(value);
  },
});

const FAIR: Column = {
  id: 'bar',
  title: 'Usage, fair share, demand',
  hint: 'Dark: used. Light: entitled to. Striped: wanted. Line: guaranteed.',
  width: 180,
  value: e => e.fair_share_ratio,
  text: e => percent(e.fair_share_ratio),
  draw: 'bar',
};

const SUMMARY: Column[] = [
  FAIR,
  textual('status', 'Status', 92, e => status(e), { draw: 'badge' }),
  weight,
  textual('mode', 'Mode', 86, e => (e.mode !== undefined ? modeTitle(e.mode) : fifo(e))),
  textual('user', 'User', 76, e => e.user ?? '', { hint: 'Who started the operation', ofOperations: true }),
  textual('dominant', 'Resource', 84, e => resourceTitle(e.dominant_resource ?? ''), {
    hint: 'The resource of which the largest part of the cluster is used',
  }),
  dominantShare('fair', 'Fair share', e => e.fair_share_ratio, 'What it is entitled to now'),
  dominantShare('usage', 'Usage', e => e.usage_ratio, 'What it uses'),
  dominantShare('demand', 'Demand', e => e.demand_ratio, 'What it uses and what it waits for'),
  dominantShare(
    'guaranteed',
    'Guarantee',
    e => e.detailed_dominant_fair_share && guaranteed(e),
    'Strong and integral guarantee within the fair share',
  ),
  numeric('operations', 'Operations', 92, e => e.operation_count, count),
  numeric('duration', 'Runs for', 104, runsFor, ms => duration(Math.floor(ms / 1_000) * 1_000), {
    hint: 'Since the operation was started',
    ofOperations: true,
  }),
];

function runsFor(e: Any): number | undefined {
  return e.start_time === undefined ? undefined : elapsed(e.start_time, undefined);
}

export const modeTitle = (mode: string): string => (mode === 'fifo' ? 'FIFO' : words(mode));

/** Among those that can be scheduled, else among all; nothing outside of FIFO pools. */
export const placeInFifo = (e: Any): number | undefined =>
  e.effective_fifo_index ?? e.fifo_index ?? undefined;

const fifo = (e: Any): string => (placeInFifo(e) === undefined ? '' : `FIFO ${placeInFifo(e)}`);

function guaranteed(e: Any): number {
  const detailed = e.detailed_dominant_fair_share;
  return (detailed?.strong_guarantee ?? 0) + (detailed?.integral_guarantee ?? 0);
}

/** Reasons not to be scheduled that are no trouble: all that is wanted runs. */
const CONTENT = ['', 'no_pending_jobs', 'no_pending_allocations'];

/** Why an operation cannot be scheduled, if that is news to anybody. */
export const unschedulable = (e: Any): string | undefined =>
  e.unschedulable_reason == null || CONTENT.includes(e.unschedulable_reason)
    ? undefined
    : words(e.unschedulable_reason);

/** What an element is in, if it is worth a mark. */
export function status(e: Any): string {
  const reason = unschedulable(e);
  if (reason !== undefined) return reason;
  if (e.starvation_status !== undefined && e.starvation_status !== 'non_starving')
    return words(e.starvation_status);
  if (e.scheduling_status === 'below_fair_share') return 'below';
  return '';
}

function ofResource(resource: Resource): Column[] {
  const title = resourceTitle(resource);
  const column = (id: string, name: string, of: (e: Any) => Resources | undefined, hint: string): Column => ({
    id: `${resource}-${id}`,
    title: name,
    hint: `${title}: ${hint}`,
    width: 112,
    numeric: true,
    value: e => of(e)?.[resource],
    text: (e, c) => {
      const value = of(e)?.[resource];
      if (value === undefined) return '';
      return c.absolute ? amount(resource, value) : percent(ratio(value, amountOf(c.total, resource)));
    },
  });
  return [
    { ...FAIR, id: `${resource}-bar`, value: e => amountOf(e.fair_resources, resource) },
    weight,
    column('strong', 'Guarantee', e => e.strong_guarantee_resources, 'strong guarantee as configured'),
    column(
      'estimated',
      'Estimated',
      e => e.estimated_guarantee_resources,
      'what guarantees would give if all wanted theirs',
    ),
    column('demand', 'Demand', e => e.resource_demand, 'used and waited for'),
    column('fair', 'Fair share', e => e.fair_resources, 'entitled to'),
    column('usage', 'Usage', e => e.resource_usage, 'used'),
    column('limit', 'Limit', e => limitOf(e, resource), 'never more than this'),
  ];
}

/** Only limits that somebody has set: the cluster itself is no news. */
const limitOf = (e: Any, resource: Resource): Resources | undefined => {
  const value = e.specified_resource_limits?.[resource];
  return value === undefined ? undefined : { [resource]: value };
};

const OPERATIONS: Column[] = [
  numeric('running', 'Running', 90, e => e.running_operation_count, count),
  numeric('max-running', 'of at most', 92, e => e.max_running_operation_count, count),
  {
    ...numeric(
      'running-part',
      'Running',
      150,
      e => part(e.running_operation_count, e.max_running_operation_count),
      percent,
    ),
    draw: 'running',
  },
  numeric('total', 'All', 90, e => e.operation_count, count),
  numeric('max-total', 'of at most', 92, e => e.max_operation_count, count),
  {
    ...numeric('total-part', 'All', 150, e => part(e.operation_count, e.max_operation_count), percent),
    draw: 'total',
  },
  numeric('lightweight', 'Lightweight', 100, e => e.lightweight_running_operation_count, count),
];

const part = (value: number | undefined, of: number | undefined): number | undefined =>
  value === undefined || of === undefined ? undefined : ratio(value, of);

const cores = (share: number | undefined, c: Context): number | undefined =>
  share === undefined ? undefined : share * amountOf(c.total, 'cpu');

const ofCores = (id: string, title: string, share: (e: Any) => number | undefined, hint: string): Column => ({
  id,
  title,
  hint,
  width: 116,
  numeric: true,
  value: share,
  text: (e, c) => (share(e) ? (c.absolute ? number(cores(share(e), c)) : percent(share(e))) : ''),
});

/** What descendants have together: the totals count the pool's own. */
const ofChildren = (total: number | undefined, own: number | undefined): number | undefined =>
  total === undefined ? undefined : Math.max(0, total - (own ?? 0));

const INTEGRAL: Column[] = [
  textual('type', 'Type', 86, e =>
    e.integral_guarantee_type === 'none' ? '' : (e.integral_guarantee_type ?? ''),
  ),
  ofCores('flow', 'Flow', e => e.specified_resource_flow_ratio, 'So much flows into the volume, in cores'),
  ofCores(
    'children-flow',
    "Children's flow",
    e => ofChildren(e.total_resource_flow_ratio, e.specified_resource_flow_ratio),
    'Flow of the pools inside',
  ),
  ofCores('burst', 'Burst', e => e.specified_burst_ratio, 'Guaranteed while the volume lasts, in cores'),
  ofCores(
    'children-burst',
    "Children's burst",
    e => ofChildren(e.total_burst_ratio, e.specified_burst_ratio),
    'Burst guarantees of the pools inside',
  ),
  {
    ...numeric('volume', 'Volume', 200, e => charge(e), percent, {
      hint: 'Accumulated volume against capacity',
    }),
    draw: 'volume',
  },
  numeric('burst-duration', 'Burst lasts', 110, e => e.estimated_burst_usage_duration_seconds, seconds, {
    hint: 'How long the burst guarantee can be used with the volume there is',
  }),
];

/** Volume against capacity, nothing without a guarantee. */
export function charge(e: Pool): number | undefined {
  if (e.accumulated_resource_ratio_volume === undefined || !e.integral_pool_ratio_capacity) return undefined;
  return e.accumulated_resource_ratio_volume / e.integral_pool_ratio_capacity;
}

export interface ColumnSet {
  id: string;
  title: string;
  columns: Column[];
  /** Bars of one resource instead of the dominant one. */
  resource?: Resource;
}

const set = (resource: Resource): ColumnSet => ({
  id: resource,
  title: resourceTitle(resource),
  columns: ofResource(resource),
  resource,
});

const ALL: [ColumnSet, ...ColumnSet[]] = [
  { id: 'summary', title: 'Summary', columns: SUMMARY },
  set('cpu'),
  set('memory'),
  set('gpu'),
  set('user_slots'),
  { id: 'operations', title: 'Operations', columns: OPERATIONS },
  { id: 'integral', title: 'Integral guarantees', columns: INTEGRAL },
];

/** Sets that make sense in this cluster: none for a resource that it does not have. */
export const columnSets = (total: Resources | undefined): ColumnSet[] =>
  ALL.filter(s => s.resource === undefined || total === undefined || amountOf(total, s.resource) > 0);

export const columnSet = (id: string | undefined): ColumnSet => ALL.find(s => s.id === id) ?? ALL[0];

/** Every column that can be chosen, with a title that stands for itself. Bars of one resource belong to its set. */
export function columnsToChoose(): readonly Column[] {
  return CHOICES;
}

/** A column that is in no set: whoever wants it chooses it. */
const RARE: Column[] = [
  numeric('fifo', 'FIFO position', 110, placeInFifo, count, {
    ofOperations: true,
  }),
];

/** Numbers and their limits have short heads beside each other; alone they need their whole name. */
const WHOLE: Record<string, string> = {
  'max-running': 'Most running',
  'max-total': 'Most operations',
  total: 'All operations',
  'running-part': 'Running, bar',
  'total-part': 'All operations, bar',
};

const CHOICES: readonly Column[] = [
  ...new Map(
    [...ALL.flatMap(s => s.columns.map(column => chosenOf(s, column))), ...RARE]
      .filter(column => column.draw !== 'bar' || column.id === FAIR.id)
      .map((column): [string, Column] => [column.id, column]),
  ).values(),
];

function chosenOf(s: ColumnSet, column: Column): Column {
  const title =
    s.resource !== undefined && column.id.startsWith(`${s.resource}-`)
      ? `${s.title}: ${column.title.toLowerCase()}`
      : (WHOLE[column.id] ?? column.title);
  return title === column.title ? column : { ...column, title, width: Math.max(column.width, 136) };
}

/** The set of these columns, in this order. */
export const customSet = (id: string, names: readonly string[]): ColumnSet => ({
  id,
  title: 'Custom',
  columns: names
    .map(name => CHOICES.find(column => column.id === name))
    .filter(column => column !== undefined),
});

/** What a set needs of every pool: trees may be large, so no more is asked for. */
export function fieldsOf(s: ColumnSet): string[] {
  const common = [
    'parent',
    'mode',
    'is_ephemeral',
    'weight',
    'operation_count',
    'pool_operation_count',
    'child_pool_count',
    'usage_ratio',
    'demand_ratio',
    'fair_share_ratio',
    'dominant_resource',
    'starvation_status',
    'scheduling_status',
    'integral_guarantee_type',
  ];
  const more: Record<string, string[]> = {
    summary: ['detailed_dominant_fair_share', 'promised_fair_share'],
    operations: [
      'running_operation_count',
      'lightweight_running_operation_count',
      'max_operation_count',
      'max_running_operation_count',
    ],
    integral: [
      'specified_resource_flow_ratio',
      'total_resource_flow_ratio',
      'specified_burst_ratio',
      'total_burst_ratio',
      'accumulated_resource_ratio_volume',
      'integral_pool_ratio_capacity',
      'estimated_burst_usage_duration_seconds',
    ],
  };
  const resources = [
    'strong_guarantee_resources',
    'estimated_guarantee_resources',
    'resource_demand',
    'fair_resources',
    'resource_usage',
    'specified_resource_limits',
  ];
  const fields = (of: ColumnSet) => more[of.id] ?? (of.resource ? resources : []);
  if (ALL.includes(s)) return [...common, ...fields(s)];
  // Of chosen columns: what the sets need that they are from.
  const names = s.columns.map(column => column.id);
  const from = ALL.filter(of => of.columns.some(column => names.includes(column.id)));
  return [...new Set([...common, ...from.flatMap(fields)])];
}

/** Fields of operations that rows need beside those of pools. */
export const OPERATION_FIELDS = [
  'title',
  'user',
  'start_time',
  'pool',
  'effective_fifo_index',
  'fifo_index',
  'lightweight',
  'is_gang',
  'unschedulable_reason',
];

/** Shares for a bar, of one resource or of the dominant one. */
export interface Bar {
  usage: number;
  fair: number;
  demand: number;
  guarantee: number;
}

export function barOf(e: Any, resource: Resource | undefined, total: Resources): Bar {
  if (resource === undefined) {
    return {
      usage: e.usage_ratio ?? 0,
      fair: e.fair_share_ratio ?? 0,
      demand: e.demand_ratio ?? 0,
      guarantee: guaranteed(e),
    };
  }
  const share = (resources: Resources | undefined) =>
    ratio(amountOf(resources, resource), amountOf(total, resource));
  return {
    usage: share(e.resource_usage),
    fair: share(e.fair_resources),
    demand: share(e.resource_demand),
    guarantee: share(e.strong_guarantee_resources),
  };
}

export { dominant };
