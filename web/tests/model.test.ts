import { describe, expect, test } from 'vitest';
import type { OperationSummary, StatisticsTree } from '../src/api/operations';
import { barOf, charge, columnSet, columnSets, status } from '../src/model/columns';
import { poolColors } from '../src/model/colors';
import { isKept, scaled, sum, timesOf } from '../src/model/history';
import { forwardClientLink, links } from '../src/model/links';
import {
  justBefore,
  cursorsOf,
  phasesOf,
  placesOf,
  progressOf,
  titleOf,
  waitsForResources,
} from '../src/model/operations';
import { isDirectory, normalized, stepsOf } from '../src/model/paths';
import { jobStatisticsRows, statisticsRows, statisticText } from '../src/model/statistics';
import {
  EMPTY,
  millpondCommand,
  problemsOf,
  pythonProgram,
  shellWord,
  specOf,
  ytCommand,
} from '../src/model/submit';
import { timelineOf } from '../src/model/timeline';
import { nextSort, parseSort, printSort } from '../src/model/urlState';
import { linesOf } from '../src/model/valueTree';
import { prettyYson, yson } from '../src/model/yson';

describe('YSON', () => {
  test('on one line', () =>
    expect(yson({ a: 1, 'b c': 'say "hi"\n', d: [true, null, 2.5], e: {} })).toBe(
      '{a=1; "b c"="say \\"hi\\"\\n"; d=[%true; #; 2.5]; e={}}',
    ));
  test('over several lines', () =>
    expect(prettyYson({ a: [1], b: {} })).toBe('{\n    a = [\n        1;\n    ];\n    b = {};\n}'));
});

describe('a value as lines', () => {
  const value = { outer: { inner: 'needle', other: [1, 2] }, flat: null };
  const text = (depth: number, toggled: string[] = [], search = '') =>
    linesOf(value, { depth, toggled: new Set(toggled), search }).map(line =>
      `${' '.repeat(line.depth)}${line.name ?? ''} ${line.text}`.trimEnd(),
    );

  test('opens to a depth', () => expect(text(1)).toEqual([' {', ' outer { 2 keys }', ' flat #', '   }']));
  test('opens and closes by hand', () => {
    expect(text(1, ['/outer'])).toContain('  inner "needle"');
    expect(text(5, ['/outer'])).toContain(' outer { 2 keys }');
  });
  test('opens where something is found', () => {
    const lines = linesOf(value, { depth: 0, toggled: new Set(), search: 'NEED' });
    expect(lines.filter(line => line.found).map(line => line.name)).toEqual(['inner']);
  });
});

describe('operations', () => {
  const operation = (changes: Partial<OperationSummary>): OperationSummary => ({
    id: 'a-b-c-d',
    type: 'vanilla',
    state: 'running',
    authenticated_user: 'root',
    start_time: '2026-01-02T03:04:05.000000Z',
    suspended: false,
    ...changes,
  });
  const jobs = { total: 4, running: 0, completed: 1, pending: 3, failed: 0, aborted: 0, lost: 0 };

  test('titles: its own, else its command, else its type', () => {
    expect(titleOf(operation({ brief_spec: { title: 't' } }))).toBe('t');
    expect(titleOf(operation({ brief_spec: { tasks: { a: { command: 'make' } } } }))).toBe('make');
    expect(titleOf(operation({}))).toBe('vanilla');
  });
  test('waits for resources', () => {
    expect(waitsForResources(operation({ brief_progress: { jobs } }))).toBe(true);
    expect(waitsForResources(operation({ brief_progress: { jobs }, suspended: true }))).toBe(false);
    expect(waitsForResources(operation({ brief_progress: { jobs: { ...jobs, running: 1 } } }))).toBe(false);
  });
  test('progress', () => {
    expect(progressOf(jobs)).toEqual({ completed: 0.25, running: 0 });
    expect(progressOf(undefined)).toEqual({ completed: 0, running: 0 });
  });
  test('places', () =>
    expect(
      placesOf(
        operation({
          runtime_parameters: { scheduling_options_per_pool_tree: { physical: { pool: 'p', weight: 2 } } },
        }),
      ),
    ).toEqual([{ tree: 'physical', pool: 'p', weight: 2 }]));
  test.each([
    ['2026-01-02T03:04:05.175836Z', '2026-01-02T03:04:05.175835Z'],
    ['2026-01-02T03:04:05.000000Z', '2026-01-02T03:04:04.999999Z'],
    ['2026-01-01T00:00:00.000000Z', '2025-12-31T23:59:59.999999Z'],
  ])('just before %s', (time, before) => expect(justBefore(time)).toBe(before));
  test('pages of the list: nothing of one moment is lost between them', () => {
    const cursors = (...seconds: number[]) =>
      cursorsOf(seconds.map(n => ({ start_time: `2026-01-02T03:04:0${n}.000000Z` })));
    const at = (text: string) => `2026-01-02T03:04:0${text}Z`;
    expect(cursors()).toBeUndefined();
    expect(cursors(5, 4, 3)).toEqual({ older: at('2.999999'), newer: at('5.000000') });
    expect(cursors(5, 3, 3)).toEqual({ older: at('3.000000'), newer: at('5.000000') });
    expect(cursors(5, 5, 3)).toEqual({ older: at('2.999999'), newer: at('4.999999') });
    expect(cursors(5, 5, 5)).toEqual({ older: at('4.999999'), newer: at('5.000000') });
  });
  test('phases take the time to the next one', () => {
    const events = [
      { time: '2026-01-02T03:04:05Z', state: 'starting' },
      { time: '2026-01-02T03:04:05Z', state: 'pending' },
      { time: '2026-01-02T03:04:15Z', state: 'running' },
      { time: '2026-01-02T03:05:15Z', state: 'completed' },
    ];
    expect(phasesOf(events, 0, '2026-01-02T03:05:15Z')).toEqual([
      { state: 'pending', at: '2026-01-02T03:04:05Z', ms: 10_000 },
      { state: 'running', at: '2026-01-02T03:04:15Z', ms: 60_000 },
    ]);
  });
});

describe('statistics', () => {
  const leaf = (state: string, value: number, n = 1, pool_tree = 'physical') => ({
    summary: { sum: value * n, count: n, min: value, max: value, last: value },
    tags: { job_state: state, job_type: 'work', pool_tree },
  });
  const tree: StatisticsTree = {
    time: { exec: [leaf('completed', 10, 2), leaf('failed', 40)] },
    user_job: { max_memory: [leaf('failed', 7)] },
  };

  test('sums over tags', () => {
    const [, exec] = statisticsRows(tree, {});
    expect(exec).toMatchObject({
      path: 'time/exec',
      depth: 1,
      summary: { sum: 60, count: 3, min: 10, max: 40 },
    });
  });
  test('what has nothing left is not shown', () =>
    expect(statisticsRows(tree, { state: 'completed' }).map(row => row.path)).toEqual(['time', 'time/exec']));
  test('by tree', () => {
    const two = { exec: [leaf('completed', 10, 2), leaf('completed', 5, 1, 'cloud')] };
    expect(statisticsRows(two, { tree: 'cloud' })[0]?.summary?.sum).toBe(5);
    expect(statisticsRows(two, { tree: 'nowhere' })).toEqual([]);
  });
  test('by name', () =>
    expect(statisticsRows(tree, { name: 'MEMORY' }).map(row => row.path)).toEqual([
      'user_job',
      'user_job/max_memory',
    ]));
  test('of one job', () =>
    expect(
      jobStatisticsRows({ time: { exec: { sum: 5, count: 1, min: 5, max: 5 } } }).map(row => row.path),
    ).toEqual(['time', 'time/exec']));
  test.each([
    ['time/exec', 4_000, '4 s'],
    ['user_job/cpu/user', 1_500, '1.5 s'],
    ['user_job/max_memory', 94_208, '92 KiB'],
    ['user_job/memory_reserve_factor_x10000', 5_000, '0.5'],
    ['job_proxy/smoothed_cpu_usage_x100', 150, '1.5'],
    ['user_job/cpu_reserve_millicores', 500, '0.5'],
    ['custom/rows', 17, '17'],
  ])('%s %s is %s', (path, value, text) => expect(statisticText(path, value)).toBe(text));
});

describe('columns', () => {
  test('sets for what the cluster has', () => {
    expect(columnSets({ cpu: 8, memory: 1 }).map(set => set.id)).toEqual([
      'summary',
      'cpu',
      'memory',
      'operations',
      'integral',
    ]);
    expect(columnSet('nonsense').id).toBe('summary');
  });
  test('bars of a resource are shares of the whole', () =>
    expect(
      barOf({ resource_usage: { cpu: 2 }, fair_resources: { cpu: 4 }, resource_demand: { cpu: 16 } }, 'cpu', {
        cpu: 8,
      }),
    ).toEqual({
      usage: 0.25,
      fair: 0.5,
      demand: 2,
      guarantee: 0,
    }));
  test('what is worth a mark', () => {
    expect(status({ starvation_status: 'aggressively_starving' })).toBe('aggressively starving');
    expect(status({ scheduling_status: 'below_fair_share', starvation_status: 'non_starving' })).toBe(
      'below',
    );
    expect(status({ unschedulable_reason: 'no_pending_jobs' })).toBe('');
    expect(status({})).toBe('');
  });
  test('charge', () => {
    expect(charge({ accumulated_resource_ratio_volume: 10, integral_pool_ratio_capacity: 40 })).toBe(0.25);
    expect(charge({ integral_pool_ratio_capacity: 0 })).toBeUndefined();
  });
});

describe('history', () => {
  test('times', () =>
    expect(timesOf({ start: '1970-01-01T00:01:00Z', step: 5_000, count: 3, columns: {} as never })).toEqual([
      60, 65, 70,
    ]));
  test('scales', () => expect(scaled([1, null], value => value * 24)).toEqual([24, null]));
  test('sums know no half', () => expect(sum([1, null, 2], [1, 1, null])).toEqual([2, null, null]));
});

describe('addresses', () => {
  test('the link that the client prints', () => {
    expect(forwardClientLink('/', '?page=operation&mode=detail&id=a-b-c-d&tab=details')).toBe(
      '/operations/a-b-c-d',
    );
    expect(forwardClientLink('/', '?page=operation&id=a-b-c-d&tab=jobs')).toBe(
      '/operations/a-b-c-d?tab=jobs',
    );
    expect(forwardClientLink('/', '')).toBe('/scheduling');
    expect(forwardClientLink('/nodes', '?id=1')).toBeUndefined();
  });
  test('names are escaped', () =>
    expect(links.pool('t', 'a:b/c', 'why')).toBe('/scheduling/t/a%3Ab%2Fc?tab=why'));
  test('sorting', () => {
    expect(parseSort('-weight')).toEqual({ by: 'weight', down: true });
    expect(parseSort(null)).toBeUndefined();
    expect(printSort({ by: 'weight', down: true })).toBe('-weight');
    const first = nextSort(undefined, 'weight', true);
    const second = nextSort(first, 'weight', true);
    expect([first, second, nextSort(second, 'weight', true)]).toEqual([
      { by: 'weight', down: true },
      { by: 'weight', down: false },
      undefined,
    ]);
  });
  test('paths of the tree', () => {
    expect(stepsOf('//sys/pools').map(step => step.path)).toEqual(['/', '//sys', '//sys/pools']);
    expect(stepsOf('//a\\/b').map(step => step.title)).toEqual(['/', 'a/b']);
    expect(normalized(' /sys/pools/ ')).toBe('//sys/pools');
    expect(normalized('')).toBe('/');
    expect([isDirectory('map_node'), isDirectory('user_map'), isDirectory('document')]).toEqual([
      true,
      true,
      false,
    ]);
  });
});

describe('submit', () => {
  const form = {
    ...EMPTY,
    title: "it's",
    pool: 'research',
    command: 'echo "$X" > a',
    jobs: '3',
    cpu: '0.5',
    memory: '256MiB',
    maxFailed: '2',
  };

  test('the specification', () =>
    expect(specOf(form)).toEqual({
      title: "it's",
      pool: 'research',
      max_failed_job_count: 2,
      tasks: { task: { command: 'echo "$X" > a', job_count: 3, cpu_limit: 0.5, memory_limit: 268435456 } },
    }));
  test('words of a shell', () => {
    expect(shellWord('plain-1.0')).toBe('plain-1.0');
    expect(shellWord("it's $HOME")).toBe(`'it'\\''s $HOME'`);
  });
  test('as commands', () => {
    expect(millpondCommand(form, 'h:1')).toBe(
      `millpond run --proxy h:1 --pool research --title 'it'\\''s' --name task --jobs 3 --cpu 0.5 --memory 256MiB --max-failed 2 \\\n    -- bash -c 'echo "$X" > a'`,
    );
    expect(ytCommand(form, 'h:1')).toContain(
      `--tasks '{task={command="echo \\"$X\\" > a"; job_count=3; cpu_limit=0.5; memory_limit=268435456}}'`,
    );
    expect(pythonProgram(form, 'h:1')).toContain(
      'spec.begin_task("task").command("echo \\"$X\\" > a").job_count(3).cpu_limit(0.5).memory_limit(268435456).end_task()',
    );
  });
  test('problems', () => {
    expect(problemsOf(form)).toEqual({});
    expect(Object.keys(problemsOf({ ...EMPTY, jobs: '0', memory: 'much' })).sort()).toEqual([
      'command',
      'jobs',
      'memory',
    ]);
  });
});

test('pools have colours of their own as long as there are enough', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l'];
  const color = poolColors(names);
  expect(new Set(names.map(color)).size).toBe(12);
  expect(poolColors([...names].reverse())('c')).toBe(color('c'));
  expect(color('unknown')).toBe('var(--mp-demand)');
});

describe('the timeline of jobs', () => {
  const at = (second: number) => `2026-01-02T03:04:${String(second).padStart(2, '0')}.000000Z`;
  const job = (id: string, cookie: number, start: number, finish?: number) => ({
    id,
    type: 'vanilla',
    state: finish === undefined ? 'running' : 'aborted',
    task_name: 'work',
    job_cookie: cookie,
    start_time: at(start),
    ...(finish === undefined ? {} : { finish_time: at(finish) }),
  });

  test('runs of a unit stand on one line, the unfinished one up to now', () => {
    const { rows } = timelineOf([job('c', 1, 30), job('b', 0, 20), job('a', 0, 0, 10)], Date.parse(at(40)));
    expect(rows.map(row => [row.cookie, row.spans.map(span => [span.job.id, span.from, span.to])])).toEqual([
      [
        0,
        [
          ['a', 0, 0.25],
          ['b', 0.5, 1],
        ],
      ],
      [1, [['c', 0.75, 1]]],
    ]);
  });

  test('no jobs, no lines', () => expect(timelineOf([], 5)).toEqual({ start: 5, end: 6, rows: [] }));
});

test('jobs are remembered while they run and for three hours after their end', () => {
  const end = '2026-11-22T10:00:00.000Z';
  const at = (clock: string) => Date.parse(`2026-11-22T${clock}Z`);
  expect(isKept(undefined, at('23:00:00'))).toBe(true);
  expect(isKept(end, at('12:59:59'))).toBe(true);
  expect(isKept(end, at('13:00:00'))).toBe(false);
});
