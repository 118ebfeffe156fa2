/** Questions about exec nodes, and what can be done to them. */

import type { Resources } from '../model/resources';
import { call, callWithInput, escapePath, get, getOr } from './client';
import type { ErrorTree } from './errors';

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

export type Group = 'non_preemptible' | 'aggressively_preemptible' | 'preemptible';

/** What a job has of a node. */
export interface Allocation {
  id: string;
  job_id?: string | null;
  operation_id: string;
  task_name?: string | null;
  pool: string;
  pool_tree: string;
  state: string;
  resources: Resources;
  /** To whom it gives way. */
  group: Group;
  start_time?: string | null;
  /** It has been told to go. */
  preempting?: boolean;
  preempted_for?: string | null;
}

/** What each node of a tree holds; nodes that hold nothing are left out. */
export const allocations = (tree: string): Promise<Record<string, Allocation[]>> =>
  getOr<Record<string, Allocation[]>>(`${ORCHID}/pool_trees/${escapePath(tree)}/allocations`, {});

export const allocationsOf = (address: string): Promise<Allocation[]> =>
  getOr<Allocation[]>(`${ORCHID}/nodes/${escapePath(address)}/allocations`, []);

/** Titles by operation; nothing for one without. They do not change, so each is asked for once. */
const titles = new Map<string, string | null>();
const TITLES_KEPT = 10_000;

/** Titles of the operations that hold these: a cluster has far more than can be seen of it. */
export async function titlesOf(held: readonly Allocation[]): Promise<Record<string, string>> {
  const wanted = new Map(held.map(({ operation_id, pool_tree }) => [operation_id, pool_tree]));
  if (titles.size > TITLES_KEPT) titles.clear();
  const unknown = [...wanted].filter(([id]) => !titles.has(id));
  const answers = await Promise.all(
    unknown.map(([id, tree]) =>
      getOr<string | null>(`${ORCHID}/pool_trees/${escapePath(tree)}/operations/${id}/title`, null),
    ),
  );
  unknown.forEach(([id], index) => titles.set(id, answers[index] ?? null));
  return Object.fromEntries(
    [...wanted.keys()].flatMap(id => {
      const title = titles.get(id) ?? null;
      return title === null ? [] : [[id, title]];
    }),
  );
}

export const setNode = (address: string, name: string, value: unknown): Promise<void> =>
  callWithInput('set', { path: `${nodePath(address)}/@${name}` }, value);

/** A node without a join token that asks to be let in. */
export interface WaitingNode {
  name: string;
  /** SHA-256 of its public key: its log shows the same. */
  key_sha256: string;
  /** Where it asks from. */
  address?: string;
  creation_time: string;
}

export const waitingNodes = async (): Promise<WaitingNode[]> =>
  (await call<{ pending: WaitingNode[] }>('list_node_identities')).pending;

/** Lets in the node with this key, and no other that asks under the same name. */
export const approveNode = (name: string, key_sha256: string): Promise<unknown> =>
  call('approve_node', { name, key_sha256 });
