/** Allocations on the map of nodes: in which order, how wide, in which colour. */

import type { Allocation, Group } from '../api/nodes';
import { poolColors } from './colors';
import { amountOf, type Resources } from './resources';

export type ColorBy = 'pool' | 'group';

/** The groups with their colours, the safest first. */
export const GROUPS: Record<Group, { title: string; hint: string; color: string }> = {
  non_preemptible: { title: 'protected', hint: 'gives way to nobody', color: 'var(--mp-good)' },
  aggressively_preemptible: {
    title: 'preemptible aggressively',
    hint: 'gives way to aggressively starving operations only',
    color: 'var(--mp-fair)',
  },
  preemptible: {
    title: 'preemptible',
    hint: 'gives way to any starving operation',
    color: 'var(--mp-guarantee)',
  },
};

export interface Placed {
  allocation: Allocation;
  /** Part of the strip, 0 to 1. */
  width: number;
}

export interface Strip {
  placed: Placed[];
  /** Where the node ends: less than 1 if more is allocated than it has. */
  end: number;
}

const rank = Object.keys(GROUPS);

/** Side by side, those of one colour together. */
export function stripOf(all: Allocation[], limits: Resources, by: ColorBy): Strip {
  const cpu = amountOf(limits, 'cpu');
  const sum = all.reduce((total, one) => total + amountOf(one.resources, 'cpu'), 0);
  const whole = Math.max(cpu, sum, 1e-9);
  const key = (one: Allocation) => (by === 'pool' ? one.pool : String(rank.indexOf(one.group)));
  const placed = [...all]
    .sort((a, b) => key(a).localeCompare(key(b)) || a.id.localeCompare(b.id))
    .map(allocation => ({ allocation, width: amountOf(allocation.resources, 'cpu') / whole }));
  return { placed, end: cpu / whole };
}

export type Color = (allocation: Allocation) => string;

export function colorsOf(all: Allocation[], by: ColorBy): Color {
  if (by === 'group') return allocation => GROUPS[allocation.group].color;
  const color = poolColors(all.map(one => one.pool));
  return allocation => color(allocation.pool);
}

export interface LegendItem {
  title: string;
  color: string;
  count: number;
}

/** What the colours mean, the most frequent first; groups in their order. */
export function legendOf(all: Allocation[], by: ColorBy): LegendItem[] {
  const color = colorsOf(all, by);
  const items = new Map<string, LegendItem>();
  if (by === 'group') {
    for (const [group, { title, color: of }] of Object.entries(GROUPS)) {
      items.set(group, { title, color: of, count: 0 });
    }
  }
  for (const one of all) {
    const key = by === 'pool' ? one.pool : one.group;
    const item = items.get(key) ?? { title: one.pool, color: color(one), count: 0 };
    items.set(key, { ...item, count: item.count + 1 });
  }
  const list = [...items.values()];
  return by === 'pool' ? list.sort((a, b) => b.count - a.count) : list;
}
