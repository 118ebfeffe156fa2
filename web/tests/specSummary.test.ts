import { describe, expect, test } from 'vitest';
import { firstPath, pathCount, pathOfValue, specSummary } from '../src/model/specSummary';
import { alertsOf, endsOf, tablesOf } from '../src/model/operations';

describe('a path of a specification', () => {
  test.each([
    ['//tmp/a', '//tmp/a'],
    ['<append=%true>//tmp/a', '//tmp/a'],
    ['//tmp/a[#1:#2]', '//tmp/a'],
    ['//tmp/a{x,y}[:#2]', '//tmp/a'],
    ['//tmp/a\\[b\\]', '//tmp/a\\[b\\]'],
    ['#1-2-3-4', '#1-2-3-4'],
  ])('%s', (text, path) => expect(pathOfValue(text)?.path).toBe(path));

  test('has a name of its own for jobs, and may be nonsense', () => {
    expect(pathOfValue({ $value: '//tmp/a', $attributes: { file_name: 'b' } })).toEqual({
      path: '//tmp/a',
      name: 'b',
    });
    expect(pathOfValue(5)).toBeUndefined();
  });
});

describe('a specification in short', () => {
  test('of tasks', () => {
    const { scripts, inputs, outputs, description } = specSummary({
      description: 'why',
      tasks: {
        a: { command: 'wc', file_paths: ['//tmp/f'], layer_paths: ['//l'], environment: { A: 1 } },
        b: { command: 'cat', output_table_paths: ['//tmp/out'] },
      },
    });
    expect([description, inputs, outputs]).toEqual(['why', [], [{ path: '//tmp/out', name: undefined }]]);
    expect(scripts.map(({ name, command }) => `${name}: ${command}`)).toEqual(['a: wc', 'b: cat']);
    expect(scripts[0]).toMatchObject({
      files: [{ path: '//tmp/f' }],
      layers: [{ path: '//l' }],
      environment: [['A', '1']],
    });
  });

  test('of a mapper with tables, and of nothing', () => {
    const { scripts, inputs, outputs } = specSummary({
      input_table_paths: ['//i', '//j'],
      output_table_path: '//o',
      mapper: { command: 'cat' },
    });
    expect(scripts.map(({ name }) => name)).toEqual(['mapper']);
    expect([inputs.length, outputs[0]?.path]).toEqual([2, '//o']);
    expect(specSummary(null)).toEqual({ description: undefined, inputs: [], outputs: [], scripts: [] });
  });

  test('of a list, by the first table and the number of all', () => {
    const paths = { $value: ['//i'], $attributes: { count: 3 } };
    expect([firstPath(paths), pathCount(paths), pathCount(['//i']), pathCount(undefined)]).toEqual([
      '//i',
      3,
      1,
      0,
    ]);
    const operation = {
      id: '1',
      type: 'merge',
      state: 'running',
      authenticated_user: 'root',
      start_time: '',
      suspended: false,
      brief_spec: { input_table_paths: paths, output_table_paths: ['//o'] },
    };
    expect(tablesOf(operation)).toBe(' · //i and 2 more → //o');
    expect(tablesOf({ ...operation, brief_spec: {} })).toBe('');
  });
});

test('jobs that ended early: kinds with their reasons, the most frequent first', () => {
  const counts = {
    total: 9,
    running: 0,
    pending: 0,
    failed: 0,
    lost: 0,
    completed: { total: 4, interrupted: { preemption: 2, total: 2 }, 'non-interrupted': { total: 2 } },
    aborted: {
      total: 5,
      scheduled: { preemption: 1, user_request: 3, none: 0, total: 4 },
      non_scheduled: { scheduling_timeout: 1, total: 1 },
    },
  };
  expect(endsOf(counts)).toEqual([
    {
      kind: 'aborted',
      total: 4,
      reasons: [
        ['user_request', 3],
        ['preemption', 1],
      ],
    },
    { kind: 'not started', total: 1, reasons: [['scheduling_timeout', 1]] },
    { kind: 'interrupted', total: 2, reasons: [['preemption', 2]] },
  ]);
});

test('alerts: since when those there are, and from when to when those were that are over', () => {
  const error = (message: string) => ({ code: 1, message, attributes: {}, inner_errors: [] });
  const came = (alert_type: string, time: string) => ({ alert_type, time, error: error(time) });
  const went = (alert_type: string, time: string) => ({
    alert_type,
    time,
    error: { code: 0, message: '', attributes: {}, inner_errors: [] },
  });
  const { now, before } = alertsOf({
    alerts: { on: error('now'), silent: error('now') },
    alert_events: [
      went('old', 't0'),
      came('on', 't1'),
      came('over', 't2'),
      went('on', 't3'),
      went('over', 't4'),
      came('on', 't5'),
    ],
  });
  expect(now.map(({ name, since, error: { message } }) => [name, since, message])).toEqual([
    ['on', 't5', 'now'],
    ['silent', undefined, 'now'],
  ]);
  expect(before.map(({ name, from, to, error: { message } }) => [name, from, to, message])).toEqual([
    ['old', undefined, 't0', ''],
    ['on', 't1', 't3', 't1'],
    ['over', 't2', 't4', 't2'],
  ]);
  expect(alertsOf({})).toEqual({ now: [], before: [] });
});
