/** States that nobody plans for: no rows, a server that is gone or answers nonsense, names that are too long. */

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  command,
  eventually,
  findings,
  lineToServer,
  makePool,
  startOperation,
  useBrowser,
  visit,
  type Line,
} from './harness';

useBrowser();

const PHONE = { width: 390, height: 844 };
const LONG = 'a-pool-of-a-department-that-likes-to-write-everything-down-in-the-name-of-its-pool';

let line: Line;
let waits = '';
let empty = '';
let long = '';

beforeAll(async () => {
  line = await lineToServer();
  await makePool('states');
  await makePool(LONG);
  await makePool(`${LONG}-and-inside`, { parent_name: LONG });
  await makePool('nothing-inside');
  // No node is that large: it never has a job.
  waits = await startOperation('states', 'waits for ever', { cpu_limit: 1_000 });
  const word = 'unbreakable'.repeat(40);
  long = await startOperation(
    `${LONG}-and-inside`,
    `A title of many words, as people write them who want to be found again: ${word}`,
    { command: `sleep 3600; echo ${word}`, cpu_limit: 0.1 },
    { annotations: { [word.slice(0, 100)]: word } },
  );
  const { value } = await command<{ value: string[] }>('list', { path: '//sys/cluster_nodes' });
  empty = value[0] ?? '';
});

afterAll(async () => {
  line.close();
  for (const id of [waits, long]) await command('abort_operation', { operation_id: id });
});

/** A chart gets its width a moment after the page has it. */
const fits = (page: Page, width: number): Promise<number> =>
  eventually(
    () => page.evaluate(() => document.documentElement.scrollWidth),
    needed => needed <= width,
  );

describe('without a row', () => {
  test.each([
    ['pools', () => '/scheduling?filter=zzz', 'No pool has "zzz" in its name'],
    ['operations', () => '/operations?user=nobody', 'No operation is as you look for'],
    ['jobs', () => `/operations/${waits}?tab=jobs`, 'No job of it has been started yet'],
    ['timeline', () => `/operations/${waits}?tab=timeline`, 'No job'],
    ['statistics', () => `/operations/${waits}?tab=statistics`, 'statistics'],
    ['preemptions of an operation', () => `/operations/${waits}?tab=preemptions`, 'Suffered'],
    ['preemptions', () => '/preemptions?filter=zzz', /Nobody has been preempted|No preemption is/],
    ['nodes', () => '/nodes?filter=zzz', 'No node has such an address or tag'],
    ['nodes in a table', () => '/nodes?filter=zzz&view=table', 'No node has such an address or tag'],
    ['a pool', () => '/scheduling/physical/nothing-inside?tab=inside', 'Nothing is in this pool'],
  ])('%s', async (_, path, text) => {
    const page = await visit(path());
    await page.getByText(text).first().waitFor();
    expect(await findings(page)).toEqual([]);
  });

  test('a node without jobs, banned for the purpose', async () => {
    const ban = (banned: boolean) =>
      command('execute_batch', {
        requests: [
          { command: 'set', parameters: { path: `//sys/cluster_nodes/${empty}/@banned` }, input: banned },
        ],
      });
    await ban(true);
    try {
      const page = await visit(`/nodes/${empty}`);
      await page.getByText('Nothing is on this node.').waitFor();
      expect(await findings(page)).toEqual([]);
    } finally {
      await ban(false);
      await eventually(
        () => command<{ value: string }>('get', { path: `//sys/cluster_nodes/${empty}/@state` }),
        ({ value }) => value === 'online',
      );
    }
  });
});

const PAGES = [
  '/scheduling',
  '/scheduling/physical/states',
  '/operations',
  '/nodes',
  '/preemptions',
  '/tree',
];
const BROKEN = [/ERR_|Failed to load|status of 50/];

describe('a server that is gone', () => {
  test.each(PAGES)('when %s is opened, and when it was open', async path => {
    const page = await visit(line.url + path, {}, BROKEN);
    await page.locator('h1').first().waitFor();
    await page.getByRole('button', { name: /^Live/ }).waitFor();
    line.cut();
    try {
      await page.getByRole('button', { name: /The server does not answer/ }).waitFor();
      // What was known stays to be read.
      expect(await page.locator('h1').first().isVisible()).toBe(true);
      expect(await findings(page)).toEqual([]);
      const late = await visit(line.url + path, { colorScheme: 'dark' }, BROKEN);
      await late.getByText('The server does not answer').first().waitFor();
      expect(await findings(late)).toEqual([]);
      line.mend();
      for (const one of [page, late]) {
        await one.getByRole('button', { name: /^Live/ }).waitFor();
        await one.locator('h1').first().waitFor();
        await one.getByRole('alert').first().waitFor({ state: 'detached' });
      }
    } finally {
      line.mend();
    }
  });
});

describe('a server that answers nonsense', () => {
  test.each(PAGES)('%s', async path => {
    line.failWith(500);
    try {
      const page = await visit(line.url + path, {}, BROKEN);
      await page
        .getByRole('alert')
        .getByText(/The server answered 500/)
        .first()
        .waitFor();
      expect(await findings(page)).toEqual([]);
      line.mend();
      await page.getByRole('alert').first().waitFor({ state: 'detached' });
      await page.locator('h1').first().waitFor();
    } finally {
      line.mend();
    }
  });
});

describe('long names', () => {
  test.each([
    ['the table of pools', () => `/scheduling?filter=${LONG}`, LONG],
    ['a pool', () => `/scheduling/physical/${LONG}-and-inside`, LONG],
    ['operations', () => '/operations?filter=many+words', 'A title of many words'],
    ['an operation', () => `/operations/${long}`, 'A title of many words'],
    ['why', () => `/operations/${long}?tab=why`, 'Shares in tree physical'],
    ['nodes', () => '/nodes', LONG],
  ])('%s, on a laptop and on a phone', async (_, path, text) => {
    for (const viewport of [{ width: 1280, height: 800 }, PHONE]) {
      const page = await visit(path(), { viewport });
      await page.getByText(text).first().waitFor();
      await fits(page, viewport.width);
      expect(await findings(page)).toEqual([]);
    }
  });
});
