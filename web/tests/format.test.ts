import { describe, expect, test } from 'vitest';
import { editedAmount, parseAmount } from '../src/model/amounts';
import { ago, bytes, count, duration, elapsed, number, percent, shortId, time } from '../src/model/format';
import { amount, amountInWords, coreTime, dominant, present, resourcesInWords } from '../src/model/resources';

describe('numbers', () => {
  test.each([
    [0, '0'],
    [1, '1'],
    [0.3333333, '0.333'],
    [7.3333333, '7.33'],
    [12.56, '12.6'],
    [1234.5, '1235'],
    [123456, '123\u2009456'],
    [-2.5, '-2.5'],
    [1e9, '∞'],
    [undefined, ''],
  ])('%s is %s', (value, text) => expect(number(value)).toBe(text));

  test('thousands stand apart from five digits on', () => {
    expect(count(1234)).toBe('1234');
    expect(count(100000)).toBe('100\u2009000');
  });
});

describe('bytes', () => {
  test.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1 KiB'],
    [268435456, '256 MiB'],
    [1610612736, '1.5 GiB'],
    [51539607552, '48 GiB'],
    // Not "1024 KiB": it is as good as a mebibyte.
    [1048575, '1 MiB'],
    [-2048, '-2 KiB'],
  ])('%s is %s', (value, text) => expect(bytes(value)).toBe(text));
});

describe('shares', () => {
  test.each([
    [0, '0 %'],
    [0.0042, '0.42 %'],
    [0.00004, '0.004 %'],
    [0.125, '12.5 %'],
    [1, '100 %'],
    [4.71, '471 %'],
    [1e9, '∞'],
    [null, ''],
  ])('%s is %s', (share, text) => expect(percent(share)).toBe(text));
});

describe('durations', () => {
  test.each([
    [0, '0 ms'],
    [850, '850 ms'],
    [4_230, '4.2 s'],
    [59_400, '59 s'],
    [59_999, '1 min'],
    [200_000, '3 min 20 s'],
    [7_500_000, '2 h 5 min'],
    [273_600_000, '3 d 4 h'],
    [-1_500, '-1.5 s'],
  ])('%s ms is %s', (ms, text) => expect(duration(ms)).toBe(text));

  test('times', () => {
    const start = '2026-01-02T03:04:05.678901Z';
    expect(elapsed(start, '2026-01-02T03:04:06.678901Z')).toBe(1_000);
    expect(elapsed(undefined)).toBeUndefined();
    // Clocks of server and browser differ: nothing lasts less than no time.
    expect(elapsed(start, undefined, Date.parse('2026-01-02T03:04:00Z'))).toBe(0);
    expect(ago(start, Date.parse('2026-01-02T03:05:05Z'))).toBe('59 s ago');
    expect(time(start, new Date('2026-01-02T10:00:00Z'))).toMatch(/^\d\d:04:05$/);
    expect(time(start, new Date('2026-03-02T10:00:00Z'))).toMatch(/^2026-01-02 \d\d:04:05$/);
    expect(time('not a time')).toBe('not a time');
  });
});

describe('amounts as typed', () => {
  test.each<[string, string, number | undefined]>([
    ['memory', '16GiB', 16 * 1024 ** 3],
    ['memory', '512 MiB', 512 * 1024 ** 2],
    ['memory', '1.5g', 1.5e9],
    ['memory', '1024', 1024],
    ['cpu', '0.5', 0.5],
    ['cpu', ' ', undefined],
    ['gpu', '2', 2],
  ])('%s %j', (resource, text, value) => expect(parseAmount(resource, text)).toBe(value));

  test.each([
    ['cpu', 'eight'],
    ['cpu', '8 cores'],
    ['cpu', '2GiB'],
    ['gpu', '1.5'],
    ['memory', '5 parsecs'],
    ['memory', '--1'],
  ])('%s %j is refused with the text in the message', (resource, text) => {
    const result = parseAmount(resource, text);
    expect(result).toHaveProperty('wrong');
    expect((result as { wrong: string }).wrong).toContain(text);
  });

  test.each([0, 1, 1023, 1024, 268435456, 17179869184, 1610612736, 123456789])(
    '%s bytes survive editing',
    value => expect(parseAmount('memory', editedAmount('memory', value))).toBe(value),
  );
});

describe('resources', () => {
  const some = { cpu: 2, memory: 268435456, user_slots: 1, gpu: 0, user_memory: 268435456 };

  test('in words', () => {
    expect(resourcesInWords(some)).toBe('2 cores, 256 MiB, 1 slot');
    expect(resourcesInWords({})).toBe('nothing');
    expect(amountInWords('gpu', 1)).toBe('1 GPU');
    expect(amount('memory', 1024)).toBe('1 KiB');
    expect(amount('cpu', undefined)).toBe('');
  });

  test('shares and presence', () => {
    expect(dominant({ cpu: 0.1, memory: 0.4 })).toBe(0.4);
    expect(present({ cpu: 8, gpu: 0, user_slots: 4 })).toEqual(['cpu', 'user_slots']);
  });

  test('volumes of a share are cores over time', () => {
    expect(coreTime(1, 24)).toBe('24 core seconds');
    expect(coreTime(7200, 24)).toBe('48 core hours');
    expect(coreTime(undefined, 24)).toBeUndefined();
  });

  test('ids are told apart by their beginning', () =>
    expect(shortId('9f1975f7-38-103e8-5ec868db')).toBe('9f1975f7'));
});
