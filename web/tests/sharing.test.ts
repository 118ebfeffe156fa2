import { describe, expect, test } from 'vitest';
import { sameFields, shareEntries } from '../src/model/sharing';

describe('what answers have in common', () => {
  const old = { a: { usage: 1, shares: { cpu: 0.5 }, tags: ['x'] }, b: { usage: 2 } };
  const copy = (): typeof old => JSON.parse(JSON.stringify(old)) as typeof old;

  test('the same answer is the old one', () => {
    expect(shareEntries(old, copy())).toBe(old);
    const first = copy();
    expect(shareEntries(undefined, first)).toBe(first);
  });

  test('one entry that is different is new, the others are the old ones', () => {
    const changed = copy();
    changed.a.shares.cpu = 0.6;
    const shared = shareEntries(old, changed);
    expect(shared).toEqual(changed);
    expect([shared.a === old.a, shared.b === old.b]).toEqual([false, true]);
  });

  test('entries that come or go', () => {
    const { b } = copy();
    const without = shareEntries<object>(old, { b });
    expect(without).toEqual({ b: old.b });
    const more = shareEntries<object>(old, { ...copy(), c: {} });
    expect(Object.keys(more)).toEqual(['a', 'b', 'c']);
  });

  test('values of different kinds are different', () => {
    for (const [x, y] of [
      [{}, []],
      [null, {}],
      [0, '0'],
      [{ a: undefined }, {}],
      [[1], [1, 2]],
    ]) {
      expect(shareEntries({ it: x }, { it: y })).toEqual({ it: y });
    }
  });

  test('fields one by one', () => {
    expect(sameFields({ a: 1, b: old }, { a: 1, b: old })).toBe(true);
    expect(sameFields({ a: 1, b: old }, { a: 1, b: copy() })).toBe(false);
    expect(sameFields({ a: 1 }, { a: 1, b: 2 })).toBe(false);
  });
});
