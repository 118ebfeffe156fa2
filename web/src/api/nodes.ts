/** Questions about exec nodes, and what can be done to them. */

import type { Resources } from '../model/resources';
import { callWithInput, escapePath, get, getOr } from './client';
import type { ErrorTree } from './errors';
import type { Job } from './operations';

const ORCHID = '//sys/scheduler/orchid/scheduler';

/** As the scheduler sees it. */
export interface Node {
  state: string;
  resource_usage: Resources;
  resource_limits: Resources;
  tags: string[];
  tree?: string | null;
  job_environment?: string;
  running_job_count?: number;
  last_seen_time?: string;
  overcommitted_since?: string | null;
  running_job_statistics?: {
    total_cpu_time: number;
    aggressively_preemptible_cpu_time: number;
    preemptible_cpu_time: number;
  };
}

/** As the tree has it: what administrators set. */
export interface NodeSettings {
  banned: boolean;
  ban_message: string;
  disable_scheduler_jobs: boolean;
  resource_limits_overrides: Resources;
  user_tags: string[];
  alerts: ErrorTree[];
  register_time?: string;
}

export const nodes = (): Promise<Record<string, Node>> => get(`${ORCHID}/nodes`);
export const node = (address: string): Promise<Node> => get(`${ORCHID}/nodes/${escapePath(address)}`);
export const nodePath = (address: string): string => `//sys/cluster_nodes/${escapePath(address)}`;
export const nodeSettings = (address: string): Promise<NodeSettings> => get(`${nodePath(address)}/@`);

const MARKS = ['banned', 'disable_scheduler_jobs'];
export type Marks = Record<string, { banned: boolean; disable_scheduler_jobs: boolean }>;

/** Which nodes are banned or take no jobs. */
export async function nodeMarks(): Promise<Marks> {
  const all = await get<Record<string, { $attributes?: Marks[string] }>>('//sys/cluster_nodes', {
    attributes: MARKS,
  });
  return Object.fromEntries(
    Object.entries(all).map(([address, value]) => [
      address,
      value.$attributes ?? { banned: false, disable_scheduler_jobs: false },
    ]),
  );
}

/** Jobs that are on a node now. */
export const jobsOf = (address: string): Promise<Record<string, Job>> =>
  getOr<Record<string, Job>>(`${nodePath(address)}/orchid/exec_node/job_controller/active_jobs`, {});

export interface Owner {
  pool?: string;
  title?: string;
  allocation_count?: number;
  resource_usage?: Resources;
}

/** Pools and titles of the operations of a tree, to colour their jobs. */
export const owners = (tree: string): Promise<Record<string, Owner>> =>
  getOr<Record<string, Owner>>(
    `${ORCHID}/pool_trees/${escapePath(tree)}/operations`,
    {},
    {
      fields: ['pool', 'title', 'allocation_count', 'resource_usage'],
    },
  );

export const setNode = (address: string, name: string, value: unknown): Promise<void> =>
  callWithInput('set', { path: `${nodePath(address)}/@${name}` }, value);
