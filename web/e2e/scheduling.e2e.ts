/** The tree of pools: which tree, which columns, what its totals say, and the whole form of a pool. */

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  choose,
  command,
  eventually,
  findings,
  get,
  inDialog,
  makePool,
  rowsOf,
  settled,
  startOperation,
  still,
  useBrowser,
  visit,
} from './harness';

useBrowser();

const TREES = '//sys/pool_trees';
const POOLS = `${TREES}/physical`;

const closed = (page: Page) => page.getByRole('dialog').waitFor({ state: 'detached' });
const exists = async (path: string): Promise<boolean> =>
  (await command<{ value: boolean }>('exists', { path })).value;

beforeAll(async () => {
  await makePool('roof', { strong_guarantee_resources: { cpu: 4, memory: 1 << 30 }, weight: 3 });
  await makePool('room', { parent_name: 'roof', strong_guarantee_resources: { cpu: 1 } });
});

describe('another tree', () => {
  beforeAll(async () => {
    // No node has this tag: the tree is empty, and takes nothing from the other one.
    await command('create', {
      type: 'scheduler_pool_tree',
      ignore_existing: true,
      attributes: { name: 'cloud', config: { nodes_filter: 'nowhere-at-all' } },
    });
    await command('create', {
      type: 'scheduler_pool',
      ignore_existing: true,
      attributes: { name: 'airy', pool_tree: 'cloud' },
    });
  });

  // A tree is there for good; it stays empty.
  afterAll(async () => {
    await command('remove', { path: `${TREES}/cloud/@config/max_operation_count`, force: true });
  });

  test('is chosen, in the address, and left again', async () => {
    const page = await visit('/scheduling');
    await page.getByRole('link', { name: 'roof' }).waitFor();
    await choose(page, 'Tree', /^cloud$/);
    await page.waitForURL(/tree=cloud/);
    await page.getByRole('link', { name: 'airy' }).waitFor();
    await page.getByRole('link', { name: 'roof' }).waitFor({ state: 'detached' });
    expect(await findings(page)).toEqual([]);
    await choose(page, 'Tree', /^physical$/);
    await page.getByRole('link', { name: 'roof' }).waitFor();
    expect(new URL(page.url()).searchParams.has('tree')).toBe(false);
  });

  test('gets a pool from the form', async () => {
    const page = await visit('/scheduling');
    await page.getByRole('button', { name: 'Create pool' }).click();
    await choose(page, 'Tree of the pool', /^cloud$/);
    await choose(page, 'Parent', /^airy$/);
    await page.locator('#pool-name').fill('wisp');
    await inDialog(page, 'Create').click();
    await page.getByRole('heading', { name: 'wisp' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/scheduling/cloud/wisp');
    expect(await get(`${TREES}/cloud/airy/wisp/@parent_name`)).toBe('airy');
  });

  test('its options are changed as a whole: refused in words, then kept', async () => {
    const page = await visit('/scheduling?tree=cloud');
    await page.getByRole('link', { name: 'airy' }).waitFor();
    const config = async (): Promise<Record<string, unknown>> => get(`${TREES}/cloud/@config`);
    await page.getByRole('button', { name: 'Tree config' }).click();
    const text = page.getByLabel('Value as JSON');
    await text.waitFor();
    const before = JSON.parse(await text.inputValue()) as object;
    await text.fill('{"half');
    expect(await inDialog(page, 'Save').isDisabled()).toBe(true);
    await text.fill(JSON.stringify({ ...before, max_operation_count: -5 }));
    await inDialog(page, 'Save').click();
    await page
      .getByRole('dialog')
      .getByRole('alert')
      .getByText(/max_operation_count/)
      .first()
      .waitFor();
    expect((await config())['max_operation_count']).not.toBe(-5);
    await still(page);
    expect(await findings(page)).toEqual([]);
    await text.fill(JSON.stringify({ ...before, max_operation_count: 77 }));
    await inDialog(page, 'Save').click();
    await closed(page);
    expect(await config()).toMatchObject({ max_operation_count: 77, nodes_filter: 'nowhere-at-all' });
  });
});

describe('columns of one’s own choice', () => {
  const heads = (page: Page) =>
    page.getByRole('table', { name: 'Pools' }).getByRole('columnheader').allInnerTexts();

  test('are chosen, sorted by, linked to, and there again the next time', async () => {
    const page = await visit('/scheduling?set=custom&columns=weight');
    await eventually(
      () => heads(page),
      titles => titles.join() === 'Pool,Weight',
    );
    await choose(page, 'Columns to show', 'CPU: guarantee');
    await eventually(
      () => heads(page),
      titles => titles.join() === 'Pool,Weight,CPU: guarantee',
    );
    await choose(page, 'Columns to show', 'Most running');
    await page.keyboard.press('Escape');
    await eventually(
      () => heads(page),
      titles => titles.join() === 'Pool,Weight,CPU: guarantee,Most running',
    );
    await rowsOf(page, 'Pools').filter({ hasText: 'roof' }).getByText('25 %').waitFor();
    await page.getByRole('button', { name: 'Weight', exact: true }).click();
    await page.waitForURL(/sort=-weight/);
    expect(new URL(page.url()).searchParams.get('columns')).toBe('weight,cpu-strong,max-running');
    expect(await findings(page)).toEqual([]);

    // The browser remembers them; the address of somebody else goes before that.
    await page.goto(new URL('/scheduling', page.url()).href);
    await choose(page, 'Columns', /^Custom$/);
    await eventually(
      () => heads(page),
      titles => titles.join() === 'Pool,Weight,CPU: guarantee,Most running',
    );
    await page.goto(new URL('/scheduling?set=custom&columns=mode,nonsense', page.url()).href);
    await eventually(
      () => heads(page),
      titles => titles.join() === 'Pool,Mode',
    );
  });
});

test('the totals of the tree: what is promised, and what is left', async () => {
  const page = await visit('/scheduling?config=open');
  const totals = page.locator('.sheet').first();
  // 4 of 16 cores are given to the roof.
  await totals
    .getByRole('row', { name: /^CPU Strong guarantees 16( cores)? 4( cores)? 12( cores)?$/ })
    .waitFor();
  await totals.getByRole('row', { name: /^Running operations / }).waitFor();
  // More than there is.
  await makePool('greedy', { strong_guarantee_resources: { cpu: 20 } });
  await totals.locator('td.bad').first().waitFor();
  await command('remove', { path: `${POOLS}/greedy` });
  await totals.locator('td.bad').first().waitFor({ state: 'detached' });
});

test('a pool is renamed, moved, and an emptied field takes its option away', async () => {
  await makePool('wanders', { weight: 5, max_running_operation_count: 7 });
  const page = await visit('/scheduling/physical/wanders');
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.locator('#pool-name').fill('wandered');
  await choose(page, 'Parent', /^roof$/);
  await page.locator('#pool-weight').fill('');
  await choose(page, 'Mode', /^FIFO$/);
  await page.locator('#pool-fifo_sort_parameters').fill('weight, start_time');
  await page.getByLabel('resource_limits/cpu').or(page.locator('[id="pool-resource_limits/cpu"]')).fill('3');
  await inDialog(page, 'Save').click();
  await page.getByRole('heading', { name: 'wandered' }).waitFor();
  const path = `${POOLS}/roof/wandered`;
  expect(await exists(`${POOLS}/wanders`)).toBe(false);
  expect(await exists(`${path}/@weight`)).toBe(false);
  expect([
    await get(`${path}/@max_running_operation_count`),
    await get(`${path}/@mode`),
    await get(`${path}/@fifo_sort_parameters`),
    await get(`${path}/@resource_limits/cpu`),
  ]).toEqual([7, 'fifo', ['weight', 'start_time'], 3]);
});

test('the page stands still when it is told to, and goes on', async () => {
  const page = await visit('/scheduling/physical/room');
  await settled(page);
  await page.getByRole('button', { name: /^Live/ }).click();
  await page.getByRole('button', { name: /^Paused/ }).waitFor();
  const weight = page.locator('dt', { hasText: /^Weight$/ }).locator('xpath=following-sibling::dd[1]');
  expect(await weight.innerText()).toBe('1');
  await command('execute_batch', {
    requests: [{ command: 'set', parameters: { path: `${POOLS}/roof/room/@weight` }, input: 9 }],
  });
  // Another page that goes on has seen it: then this one would have, too.
  const other = await visit('/scheduling/physical/room');
  await eventually(
    () =>
      other
        .locator('dt', { hasText: /^Weight$/ })
        .locator('xpath=following-sibling::dd[1]')
        .innerText(),
    text => text === '9',
  );
  expect(await weight.innerText()).toBe('1');
  await page.getByRole('button', { name: /^Paused/ }).click();
  await eventually(
    () => weight.innerText(),
    text => text === '9',
  );
});

test('operations in the tree: their marks, and rows that come when a pool is opened', async () => {
  await makePool('queue', { mode: 'fifo' });
  const gang = await startOperation('queue', 'a gang in the queue', { gang_options: {}, cpu_limit: 0.1 });
  const page = await visit('/scheduling?filter=queue');
  await page.getByRole('link', { name: 'queue', exact: true }).waitFor();
  await page.getByPlaceholder('Filter pools by name').fill('');
  const row = rowsOf(page, 'Pools').filter({ hasText: 'a gang in the queue' });
  const toggle = page.getByRole('button', { name: /^(Open|Close) queue$/ });
  if ((await toggle.getAttribute('aria-expanded')) === 'true') await toggle.click();
  await row.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Open queue', exact: true }).click();
  await row.getByText('gang', { exact: true }).waitFor();
  await row.getByText(/^FIFO \d+$/).waitFor();
  await row.getByText('root', { exact: true }).waitFor();
  await command('abort_operation', { operation_id: gang });
  await row.waitFor({ state: 'detached' });
});
