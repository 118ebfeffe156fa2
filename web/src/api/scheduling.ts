/** Questions about pool trees, and changes of pools. */

import { ROOT, type OperationElement, type Operations, type Pool, type Pools } from '../model/pools';
import type { Resources } from '../model/resources';
import { batch, call, callWithInput, escapePath, get, getOr, list } from './client';
import { decodeError, Refusal, type ErrorTree } from './errors';

const ORCHID = '//sys/scheduler/orchid/scheduler';
const treePath = (tree: string): string => `${ORCHID}/pool_trees/${escapePath(tree)}`;

export interface Trees {
  names: string[];
  default: string;
}

export async function trees(): Promise<Trees> {
  const [names, byDefault] = await Promise.all([
    list('//sys/pool_trees'),
    getOr('//sys/pool_trees/@default_tree', 'physical'),
  ]);
  return { names: [...names].sort(), default: byDefault };
}

/** All pools of a tree, with the root, each with these fields. */
export const pools = (tree: string, fields: string[]): Promise<Pools> =>
  get(`${treePath(tree)}/pools`, { fields });

export const pool = (tree: string, name: string): Promise<Pool> =>
  get(`${treePath(tree)}/pools/${escapePath(name)}`);

/** How many operations the tree has, and may have. */
export const rootCounts = (tree: string): Promise<Pool> =>
  get(`${treePath(tree)}/pools/${escapePath(ROOT)}`, {
    fields: [
      'operation_count',
      'running_operation_count',
      'max_operation_count',
      'max_running_operation_count',
    ],
  });

/** Operations that stand in each of these pools themselves. */
export async function operationsByPool(
  tree: string,
  names: string[],
  fields: string[],
): Promise<Record<string, Operations>> {
  const paths = names.map(name => `${treePath(tree)}/operations_by_pool/${escapePath(name)}`);
  // A pool may have gone since the table was drawn.
  const answers = await Promise.all(paths.map(path => getOr<Operations>(path, {}, { fields })));
  return Object.fromEntries(names.map((name, index) => [name, answers[index] ?? {}]));
}

/** Where an operation stands in a tree; nothing if it is not scheduled there. */
export const operationElement = (tree: string, id: string): Promise<OperationElement | null> =>
  getOr<OperationElement | null>(`${treePath(tree)}/operations/${id}`, null);

export interface Distribution {
  distributed_resources?: Resources;
  undistributed_resources?: Resources;
  distributed_burst_guarantee_resources?: Resources;
  distributed_resource_flow?: Resources;
}

export interface TreeSummary {
  resource_limits: Resources;
  resource_usage: Resources;
  resource_distribution_info: Distribution;
  node_count: number;
  pool_count: number;
}

export async function treeSummary(tree: string): Promise<TreeSummary> {
  const value = <T>(name: string) => get<T>(`${treePath(tree)}/${name}`);
  const [resource_limits, resource_usage, resource_distribution_info, node_count, pool_count] =
    await Promise.all([
      value<Resources>('resource_limits'),
      value<Resources>('resource_usage'),
      value<Distribution>('resource_distribution_info'),
      value<number>('node_count'),
      value<number>('pool_count'),
    ]);
  return { resource_limits, resource_usage, resource_distribution_info, node_count, pool_count };
}

export const alerts = (): Promise<ErrorTree[]> => getOr<ErrorTree[]>('//sys/scheduler/@alerts', []);

/** The settings of a pool: only those that somebody has made. */
export type Settings = Record<string, unknown>;

/** Path of a pool among its parents; pools that exist only while operations use them have none. */
export const poolPath = (tree: string, path: string[]): string =>
  ['//sys/pool_trees', tree, ...path].map((part, index) => (index === 0 ? part : escapePath(part))).join('/');

export const settings = (path: string): Promise<Settings> => get(`${path}/@`);

export const createPool = (
  tree: string,
  parent: string,
  name: string,
  attributes: Settings,
): Promise<unknown> =>
  call('create', {
    type: 'scheduler_pool',
    attributes: { ...attributes, name, parent_name: parent, pool_tree: tree },
  });

export const removePool = (path: string): Promise<unknown> => call('remove', { path });

/**
 * Sets what changed in one step and takes away what was emptied. An error of the server is thrown as it is: it
 * names the option.
 */
export async function changePool(path: string, set: Settings, unset: string[]): Promise<void> {
  const requests = unset.map(name => ({
    command: 'remove',
    parameters: { path: `${path}/@${name}`, force: true },
  }));
  if (Object.keys(set).length > 0) await callWithInput('multiset_attributes', { path }, set);
  if (requests.length === 0) return;
  for (const result of await batch(requests)) {
    if (result.error !== undefined) throw new Refusal(decodeError(result.error, 'The change was refused'));
  }
}

/** What is moved from one pool to another, along the way between them (http-api.md 8.8). */
export interface Delta {
  strong_guarantee_resources?: Resources;
  burst_guarantee_resources?: Resources;
  resource_flow?: Resources;
  max_operation_count?: number;
  max_running_operation_count?: number;
}

export const transfer = (tree: string, from: string, to: string, delta: Delta): Promise<unknown> =>
  call('transfer_pool_resources', {
    pool_tree: tree,
    source_pool: from,
    destination_pool: to,
    resource_delta: delta,
  });

export interface PoolExplanation {
  dominant_resource: string;
  total_resource_limits: Resources;
  demand_share: Resources;
  limited_demand_share: Resources;
  usage_share: Resources;
  detailed_fair_share: {
    strong_guarantee: Resources;
    integral_guarantee: Resources;
    weight_proportional: Resources;
    total: Resources;
  };
  outcome: { reason: string };
  siblings: Sibling[];
  more_siblings: number;
  changes: string[];
  text: string[];
  parent?: string;
}

export interface Sibling {
  id: string;
  is_self: boolean;
  is_pool: boolean;
  weight: number;
  demand: number;
  guarantee: number;
  fair_share: number;
  wants_more: boolean;
}

export const explainPool = (tree: string, name: string): Promise<PoolExplanation> =>
  get(`${treePath(tree)}/pool_explanations/${escapePath(name)}`);
