import { describe, expect, test } from 'vitest';
import { drawnNext, Gradual, type Rows } from '../src/model/gradual';

const rows = (first: number, last: number): Rows => ({ first, last });
const NONE = rows(0, -1);
const sizeOf = ({ first, last }: Rows): number => Math.max(0, last - first + 1);

describe('rows of a long table, frame by frame', () => {
  test('a table that was empty comes as a whole', () => {
    expect(drawnNext(undefined, rows(0, 13), rows(0, 19))).toEqual(rows(0, 19));
    expect(drawnNext(NONE, rows(0, 13), rows(0, 19))).toEqual(rows(0, 19));
    expect(drawnNext(undefined, NONE, NONE)).toEqual(NONE);
  });

  test('moving by a few rows draws them at once, and drops those that are far away', () => {
    expect(drawnNext(rows(0, 19), rows(6, 19), rows(0, 25))).toEqual(rows(0, 25));
    expect(drawnNext(rows(0, 25), rows(10, 23), rows(4, 29))).toEqual(rows(4, 29));
    expect(drawnNext(rows(4, 29), rows(6, 19), rows(0, 25))).toEqual(rows(0, 25));
  });

  test('a jump draws some of the rows in sight, from the top; the others follow, then those around', () => {
    const [inSight, wanted] = [rows(500, 513), rows(494, 519)];
    const frames: Rows[] = [];
    let drawn = rows(0, 19);
    for (let frame = 0; frame < 5; frame += 1) {
      drawn = drawnNext(drawn, inSight, wanted, 8);
      frames.push(drawn);
    }
    expect(frames).toEqual([rows(500, 507), rows(500, 515), rows(496, 519), wanted, wanted]);
  });

  test('upwards the rows in sight come before those below, too', () => {
    expect(drawnNext(rows(110, 129), rows(100, 113), rows(94, 119), 8)).toEqual(rows(102, 119));
    expect(drawnNext(rows(102, 119), rows(100, 113), rows(94, 119), 8)).toEqual(rows(94, 119));
  });

  test('whatever happens: never more new rows than allowed, never one that is not wanted, and it ends', () => {
    // A sequence of its own: the same in each run.
    let seed = 1;
    const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
    const wrong: object[] = [];
    let drawn = rows(0, 25);
    for (let round = 0; round < 20_000; round += 1) {
      const count = 1 + random(400);
      const first = random(count);
      const inSight = rows(first, Math.min(count - 1, first + random(30)));
      const wanted = rows(Math.max(0, inSight.first - 6), Math.min(count - 1, inSight.last + 6));
      const atOnce = 1 + random(12);
      for (let frame = random(4); frame >= 0; frame -= 1) {
        const before = drawn;
        drawn = drawnNext(before, inSight, wanted, atOnce);
        const kept = sizeOf(rows(Math.max(before.first, wanted.first), Math.min(before.last, wanted.last)));
        const isRight =
          drawn.first >= wanted.first &&
          drawn.last <= wanted.last &&
          sizeOf(drawn) - kept === Math.min(atOnce, sizeOf(wanted) - kept);
        if (!isRight) wrong.push({ before, inSight, wanted, atOnce, drawn });
      }
    }
    expect(wrong).toEqual([]);
  });

  test('a table asks until everything is drawn, each frame for more', () => {
    const table = new Gradual();
    const top = { startIndex: 0, endIndex: 13, overscan: 6, count: 1_000 };
    expect(table.frame()(top)).toHaveLength(20);
    expect(table.isDone).toBe(true);
    const below = { ...top, startIndex: 900, endIndex: 913 };
    const sizes = [1, 2, 3, 4].map(() => [table.frame()(below).length, table.isDone]);
    expect(sizes).toEqual([
      [10, false],
      [20, false],
      [26, true],
      [26, true],
    ]);
    expect(table.frame()({ startIndex: 0, endIndex: 0, overscan: 6, count: 0 })).toEqual([]);
    expect(table.isDone).toBe(true);
    expect(table.frame()(top)).toHaveLength(20);
  });
});
