import { describe, expect, test } from 'vitest';
import { columnSet, columnSets, columnsToChoose, customSet, fieldsOf } from '../src/model/columns';
import { known } from '../src/model/customColumns';

describe('columns to choose from', () => {
  test('have titles that stand for themselves, and names of their own', () => {
    const all = columnsToChoose();
    expect(new Set(all.map(({ title }) => title)).size).toBe(all.length);
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
    expect(all.map(({ title }) => title)).toEqual(
      expect.arrayContaining(['Weight', 'FIFO position', 'CPU: guarantee', 'Memory: usage', 'Volume']),
    );
  });

  test('are every column of every set, but bars of one resource', () => {
    const names = new Set(columnsToChoose().map(({ id }) => id));
    const missing = columnSets(undefined)
      .flatMap(({ columns }) => columns.map(({ id }) => id))
      .filter(id => !names.has(id));
    expect(missing).toEqual(['cpu-bar', 'memory-bar', 'gpu-bar', 'user_slots-bar']);
  });

  test('that nobody knows are left out, each is there once, in their order', () => {
    expect(known(['usage', 'nonsense', 'weight', 'usage'])).toEqual(['usage', 'weight']);
    expect(customSet('custom', ['usage', 'weight']).columns.map(({ id }) => id)).toEqual(['usage', 'weight']);
  });

  test('are asked for with what the sets need that they are from', () => {
    const fields = fieldsOf(customSet('custom', ['cpu-strong', 'volume']));
    expect(fields).toEqual(
      expect.arrayContaining(['strong_guarantee_resources', 'integral_pool_ratio_capacity', 'parent']),
    );
    expect(fields).not.toContain('max_operation_count');
    expect(new Set(fields).size).toBe(fields.length);
    expect(fieldsOf(columnSet('operations'))).toContain('max_operation_count');
  });
});
