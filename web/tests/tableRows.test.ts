import { expect, test } from 'vitest';
import type { Json } from '../src/api/client';
import { cellText, columnsOf } from '../src/model/tableRows';

test('columns of rows that have not the same ones, and what their cells say', () => {
  const rows: Record<string, Json>[] = [{ b: 1, a: 'x' }, { c: null }, { a: '' }];
  expect(columnsOf(rows)).toEqual(['b', 'a', 'c']);
  expect(columnsOf([])).toEqual([]);
  expect([undefined, null, 0, false, 'x', [1, 'y'], { k: 'v' }].map(value => cellText(value))).toEqual([
    '',
    'null',
    '0',
    'false',
    'x',
    '[1,"y"]',
    '{"k":"v"}',
  ]);
});
