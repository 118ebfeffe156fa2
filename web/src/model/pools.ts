/** Pools and operations of a tree as the scheduler's Orchid shows them, and the tree they form. */

import { compareNames } from './format';
import type { Resources } from './resources';

/** The part of an element that pools and operations have in common. */
export interface Element {
  weight?: number;
  dominant_resource?: string;
  resource_usage?: Resources;
  resource_demand?: Resources;
  resource_limits?: Resources;
  specified_resource_limits?: Resources;
  fair_resources?: Resources;
  strong_guarantee_resources?: Resources;
  effective_strong_guarantee_resources?: Resources;
  estimated_guarantee_resources?: Resources;
  usage_share?: Resources;
  demand_share?: Resources;
  promised_fair_share?: Resources;
  detailed_dominant_fair_share?: {
    strong_guarantee: number;
    integral_guarantee: number;
    weight_proportional: number;
    total: number;
  };
  detailed_fair_share?: { total: Resources };
  usage_ratio?: number;
  demand_ratio?: number;
  fair_share_ratio?: number;
  scheduling_status?: string;
  starvation_status?: string;
}

export interface Pool extends Element {
  parent?: string;
  mode?: string;
  is_ephemeral?: boolean;
  full_path?: string;
  operation_count?: number;
  pool_operation_count?: number;
  running_operation_count?: number;
  lightweight_running_operation_count?: number;
  max_operation_count?: number;
  max_running_operation_count?: number;
  child_pool_count?: number;
  integral_guarantee_type?: string;
  specified_burst_guarantee_resources?: Resources;
  specified_resource_flow?: Resources;
  specified_burst_ratio?: number;
  total_burst_ratio?: number;
  specified_resource_flow_ratio?: number;
  total_resource_flow_ratio?: number;
  accumulated_resource_ratio_volume?: number;
  integral_pool_ratio_capacity?: number;
  estimated_burst_usage_duration_seconds?: number;
  fifo_sort_parameters?: string[];
}

export interface OperationElement extends Element {
  pool?: string;
  title?: string;
  user?: string;
  type?: string;
  start_time?: string;
  slot_index?: number;
  fifo_index?: number;
  effective_fifo_index?: number;
  lightweight?: boolean;
  is_gang?: boolean;
  starving_since?: string;
  unschedulable_reason?: string | null;
  allocation_count?: number;
  preemptible_job_count?: number;
  aggressively_preemptible_job_count?: number;
  non_preemptible_job_count?: number;
  scheduling_segment?: string | null;
  scheduling_index?: number;
  deactivation_reasons?: Record<string, number>;
}

export type Pools = Readonly<Record<string, Pool>>;
export type Operations = Readonly<Record<string, OperationElement>>;

export const ROOT = '<Root>';

/** One line of the table. */
export type Row =
  | {
      kind: 'pool';
      key: string;
      depth: number;
      name: string;
      pool: Pool;
      expandable: boolean;
      expanded: boolean;
    }
  | { kind: 'operation'; key: string; depth: number; id: string; operation: OperationElement; owner: string }
  | { kind: 'more'; key: string; depth: number; owner: string; hidden: number };

/** Names of the pools inside each pool, in the order of names. */
export type Children = ReadonlyMap<string, readonly string[]>;

let newest: { pools: Pools; children: Children } | undefined;

/**
 * The shape of a tree. Figures change with every answer and the shape rarely does, so the newest one is kept:
 * putting thousands of names in order costs more than everything else that a table of pools needs.
 */
export function childrenOf(pools: Pools): Children {
  if (newest === undefined || !haveSameShape(newest.pools, pools)) {
    newest = { pools, children: groupedByParent(pools) };
  }
  newest.pools = pools;
  return newest.children;
}

function haveSameShape(a: Pools, b: Pools): boolean {
  if (a === b) return true;
  let counted = 0;
  for (const name in a) {
    const other = b[name];
    if (other === undefined || other.parent !== a[name]?.parent) return false;
    counted += 1;
  }
  for (const name in b) {
    if (a[name] === undefined) return false;
    counted -= 1;
  }
  return counted === 0;
}

function groupedByParent(pools: Pools): Children {
  const children = new Map<string, string[]>();
  for (const name of Object.keys(pools).sort(compareNames)) {
    const parent = pools[name]?.parent;
    if (parent === undefined) continue;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [name]);
    else siblings.push(name);
  }
  return children;
}

/** From the first level down to the pool itself; the root is not among them. */
export function pathOf(pools: Pools, name: string): string[] {
  const path: string[] = [];
  for (let at: string | undefined = name; at !== undefined && at !== ROOT && pools[at] !== undefined;) {
    path.unshift(at);
    at = pools[at]?.parent;
    if (path.length > 64) break;
  }
  return path;
}

export interface Named {
  name: string;
  element: Element;
}

/** Compares two elements: negative if the first comes first. */
export type Order = (a: Named, b: Named) => number;

export interface View {
  /** Pool whose inside is shown. */
  under: string;
  /** Part of names that are looked for, in any case. */
  filter: string;
  isExpanded: (name: string) => boolean;
  /** Operations of expanded pools, as far as they have come. */
  operationsOf: (name: string) => Operations | undefined;
  /** Nothing: by name. */
  order: Order | undefined;
}

/** More operations of a pool than this are looked at in the list of operations. */
export const OPERATIONS_SHOWN = 100;

/**
 * The rows of the table from top to bottom. A filter shows the pools it finds with the ones above them, all
 * open; without one the expanded pools show what is inside, pools before operations.
 */
export function flatten(pools: Pools, view: View): Row[] {
  const children = childrenOf(pools);
  const filter = view.filter.trim().toLowerCase();
  const found = filter === '' ? undefined : matching(pools, children, view.under, filter);
  const rows: Row[] = [];
  const inside = (parent: string, depth: number) => {
    for (const name of inOrder(children.get(parent) ?? [], pools, view.order)) {
      if (found?.has(name) === false) continue;
      const pool = pools[name] as Pool;
      const hasInside = (children.get(name)?.length ?? 0) > 0 || (pool.pool_operation_count ?? 0) > 0;
      const expanded =
        hasInside && (found === undefined ? view.isExpanded(name) : opensFor(found, children, name));
      rows.push({ kind: 'pool', key: name, depth, name, pool, expandable: hasInside, expanded });
      if (expanded) inside(name, depth + 1);
    }
    if (found === undefined && (parent === view.under ? view.under !== ROOT : true))
      operations(parent, depth);
  };
  const operations = (owner: string, depth: number) => {
    const all = Object.entries(view.operationsOf(owner) ?? {}).map(([id, operation]) => ({
      name: operation.title ?? id,
      element: operation,
      id,
    }));
    all.sort(view.order ?? byName);
    for (const { id, element } of all.slice(0, OPERATIONS_SHOWN)) {
      rows.push({ kind: 'operation', key: id, depth, id, operation: element, owner });
    }
    if (all.length > OPERATIONS_SHOWN) {
      rows.push({ kind: 'more', key: `more ${owner}`, depth, owner, hidden: all.length - OPERATIONS_SHOWN });
    }
  };
  inside(view.under, 0);
  return rows;
}

export const byName: Order = (a, b) => compareNames(a.name, b.name);

/** Children are in the order of their names already. */
function inOrder(names: readonly string[], pools: Pools, order: Order | undefined): readonly string[] {
  if (order === undefined) return names;
  const named = names.map(name => ({ name, element: pools[name] as Pool }));
  return named.sort(order).map(({ name }) => name);
}

const opensFor = (found: Set<string>, children: Children, name: string): boolean =>
  (children.get(name) ?? []).some(child => found.has(child));

function matching(pools: Pools, children: Children, under: string, filter: string): Set<string> {
  const found = new Set<string>();
  const look = (name: string): boolean => {
    let any = name.toLowerCase().includes(filter);
    for (const child of children.get(name) ?? []) any = look(child) || any;
    if (any && pools[name] !== undefined) found.add(name);
    return any;
  };
  for (const child of children.get(under) ?? []) look(child);
  return found;
}

/** Above so many operations opening everything opens no pool for the sake of its operations. */
const OPENED_AT_ONCE = 300;

/** What "open all" opens: pools with pools inside, and those with a few operations, unless that makes many. */
export function opensWithAll(pools: Pools): string[] {
  const children = childrenOf(pools);
  const few = (name: string) => {
    const n = pools[name]?.pool_operation_count ?? 0;
    return n > 0 && n <= OPERATIONS_SHOWN;
  };
  const names = Object.keys(pools).filter(name => name !== ROOT);
  const operations = names.filter(few).reduce((sum, n) => sum + (pools[n]?.pool_operation_count ?? 0), 0);
  return names.filter(
    name => (children.get(name)?.length ?? 0) > 0 || (operations <= OPENED_AT_ONCE && few(name)),
  );
}

/** Above this many pools only the first level is open at first. */
const OPEN_AT_FIRST = 60;

/** Is a pool open before anybody touched it? Small trees show all pools, none show operations. */
export function openAtFirst(pools: Pools, children: Children, name: string): boolean {
  return (children.get(name)?.length ?? 0) > 0 && Object.keys(pools).length <= OPEN_AT_FIRST;
}
