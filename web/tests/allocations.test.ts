/** The map of nodes: order, widths and colours of allocations. */

import { expect, test } from 'vitest';
import type { Allocation, Group } from '../src/api/nodes';
import { colorsOf, GROUPS, legendOf, stripOf } from '../src/model/allocations';

const allocation = (id: string, pool: string, group: Group, cpu: number): Allocation => ({
  id,
  operation_id: `operation of ${id}`,
  pool,
  pool_tree: 'physical',
  state: 'running',
  resources: { cpu, user_slots: 1 },
  group,
});

const ALL = [
  allocation('1', 'search', 'preemptible', 1),
  allocation('2', 'ads', 'non_preemptible', 2),
  allocation('3', 'search', 'aggressively_preemptible', 1),
];

test('those of one colour stand together, as wide as their part of the node', () => {
  const byPool = stripOf(ALL, { cpu: 8 }, 'pool');
  expect(byPool.placed.map(({ allocation: { id }, width }) => [id, width])).toEqual([
    ['2', 0.25],
    ['1', 0.125],
    ['3', 0.125],
  ]);
  expect(byPool.end).toBe(1);
  const byGroup = stripOf(ALL, { cpu: 8 }, 'group');
  expect(byGroup.placed.map(({ allocation: { id } }) => id)).toEqual(['2', '3', '1']);
});

test('more than a node has: the strip shows all of it, and where the node ends', () => {
  const { placed, end } = stripOf(ALL, { cpu: 3 }, 'pool');
  expect(placed.reduce((sum, { width }) => sum + width, 0)).toBeCloseTo(1);
  expect(end).toBe(0.75);
  expect(stripOf([], {}, 'pool').placed).toEqual([]);
});

test('legends: pools by number, groups in their order, absent ones too', () => {
  expect(legendOf(ALL, 'pool').map(({ title, count }) => [title, count])).toEqual([
    ['search', 2],
    ['ads', 1],
  ]);
  expect(legendOf(ALL.slice(0, 1), 'group').map(({ count }) => count)).toEqual([0, 0, 1]);
  const color = colorsOf(ALL, 'pool');
  expect(color(ALL[0] as Allocation)).toBe(color(ALL[2] as Allocation));
  expect(color(ALL[0] as Allocation)).not.toBe(color(ALL[1] as Allocation));
  expect(colorsOf(ALL, 'group')(ALL[1] as Allocation)).toBe(GROUPS.non_preemptible.color);
});
