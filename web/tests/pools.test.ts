import { describe, expect, test } from 'vitest';
import {
  childrenOf,
  flatten,
  openAtFirst,
  OPERATIONS_SHOWN,
  opensWithAll,
  pathOf,
  ROOT,
  type Operations,
  type Pools,
  type View,
} from '../src/model/pools';

const POOLS: Pools = {
  [ROOT]: {},
  production: { parent: ROOT, weight: 4 },
  search: { parent: 'production' },
  ranking: { parent: 'search', pool_operation_count: 2 },
  batch: { parent: ROOT, weight: 1 },
};
const OPERATIONS: Record<string, Operations> = {
  ranking: { 'b-1': { title: 'second' }, 'a-1': { title: 'first' } },
};

const view = (changes: Partial<View>): View => ({
  under: ROOT,
  filter: '',
  isExpanded: () => true,
  operationsOf: name => OPERATIONS[name],
  order: undefined,
  ...changes,
});

/** One line for each row: indented, operations in angle brackets. */
const shown = (changes: Partial<View>, pools = POOLS): string[] =>
  flatten(pools, view(changes)).map(row => {
    const indent = '  '.repeat(row.depth);
    if (row.kind === 'pool') return indent + row.name;
    return row.kind === 'operation'
      ? `${indent}<${row.operation.title ?? row.id}>`
      : `${indent}+${row.hidden}`;
  });

describe('the tree as rows', () => {
  test('all open', () =>
    expect(shown({})).toEqual([
      'batch',
      'production',
      '  search',
      '    ranking',
      '      <first>',
      '      <second>',
    ]));

  test('nothing open', () => expect(shown({ isExpanded: () => false })).toEqual(['batch', 'production']));

  test('open in the middle', () =>
    expect(shown({ isExpanded: name => name === 'production' })).toEqual([
      'batch',
      'production',
      '  search',
    ]));

  test('from a pool on, with its own operations', () => {
    expect(shown({ under: 'search' })).toEqual(['ranking', '  <first>', '  <second>']);
    expect(shown({ under: 'ranking' })).toEqual(['<first>', '<second>']);
  });

  test('in another order', () =>
    expect(
      shown({ order: (a, b) => (b.element.weight ?? 0) - (a.element.weight ?? 0), isExpanded: () => false }),
    ).toEqual(['production', 'batch']));

  test('a filter shows what it finds and the way to it, open or not', () => {
    expect(shown({ filter: 'RANK', isExpanded: () => false })).toEqual([
      'production',
      '  search',
      '    ranking',
    ]);
    expect(shown({ filter: 'nobody' })).toEqual([]);
  });

  test('what cannot open says so', () => {
    const rows = flatten(POOLS, view({}));
    const expandable = rows.filter(row => row.kind === 'pool' && row.expandable).map(row => row.key);
    expect(expandable).toEqual(['production', 'search', 'ranking']);
  });

  test('many operations are cut', () => {
    const many = Object.fromEntries(
      Array.from({ length: 103 }, (_, i) => [`id-${i}`, { title: `t${String(i).padStart(3, '0')}` }]),
    );
    const rows = shown({ under: 'batch', operationsOf: () => many });
    expect(rows).toHaveLength(OPERATIONS_SHOWN + 1);
    expect(rows.at(-1)).toBe('+3');
  });

  test('keys are unique among two thousand pools', () => {
    const pools: Record<string, Pools[string]> = { [ROOT]: {} };
    for (let i = 0; i < 2_000; i += 1) pools[`p${i}`] = { parent: i < 20 ? ROOT : `p${i % 20}` };
    const rows = flatten(pools, view({}));
    expect(new Set(rows.map(row => row.key)).size).toBe(2_000);
  });
});

test('paths leave the root out and end at what is not there', () => {
  expect(pathOf(POOLS, 'ranking')).toEqual(['production', 'search', 'ranking']);
  expect(pathOf(POOLS, ROOT)).toEqual([]);
  expect(pathOf(POOLS, 'gone')).toEqual([]);
});

test('small trees are open at first, large ones are not', () => {
  const children = childrenOf(POOLS);
  expect(openAtFirst(POOLS, children, 'production')).toBe(true);
  expect(openAtFirst(POOLS, children, 'ranking')).toBe(false);
  const large = {
    ...POOLS,
    ...Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`p${i}`, { parent: ROOT }])),
  };
  expect(openAtFirst(large, childrenOf(large), 'production')).toBe(false);
});

test('the shape of a tree follows it: pools that come, move and go', () => {
  const shape = (pools: Pools) => [...childrenOf(pools)].map(([name, inside]) => [name, ...inside].join(' '));
  const before = shape(POOLS);
  expect(before).toEqual(['<Root> batch production', 'search ranking', 'production search']);
  expect(shape({ ...POOLS, batch: { parent: ROOT, weight: 7 } })).toEqual(before);
  expect(childrenOf({ ...POOLS })).toBe(childrenOf(POOLS));
  expect(shape({ ...POOLS, batch: { parent: 'search' } })).toContain('search batch ranking');
  expect(shape({ ...POOLS, added: { parent: 'batch' } })).toContain('batch added');
  const without = Object.fromEntries(Object.entries(POOLS).filter(([name]) => name !== 'batch'));
  expect(shape(without)).toContain('<Root> production');
  // One instead of another: as many as before.
  expect(shape({ ...without, crowd: { parent: ROOT } })).toContain('<Root> crowd production');
});

test('everything opens, but not at the cost of asking for thousands of operations', () => {
  expect(opensWithAll(POOLS).sort()).toEqual(['production', 'ranking', 'search']);
  const crowded = Object.fromEntries(
    Array.from({ length: 10 }, (_, i) => [`p${i}`, { parent: 'batch', pool_operation_count: 50 }]),
  );
  expect(opensWithAll({ ...POOLS, ...crowded }).sort()).toEqual(['batch', 'production', 'search']);
});
