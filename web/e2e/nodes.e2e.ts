/** What an administrator does to a node, and what becomes of it on the server. */

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, eventually, findings, get, useBrowser, visit } from './harness';

useBrowser();

const NODES = '//sys/cluster_nodes';

let address = '';
let path = '';

beforeAll(async () => {
  const { value } = await command<{ value: string[] }>('list', { path: NODES });
  address = [...value].sort()[0] ?? '';
  path = `${NODES}/${address}`;
});

// The other files need all nodes as they were.
afterAll(async () => {
  const requests = [
    ['banned', false],
    ['ban_message', ''],
    ['disable_scheduler_jobs', false],
    ['user_tags', []],
    ['resource_limits_overrides', {}],
  ].map(([name, input]) => ({ command: 'set', parameters: { path: `${path}/@${name}` }, input }));
  await command('execute_batch', { requests });
  await eventually(
    () => get<string>(`${path}/@state`),
    state => state === 'online',
  );
});

const inDialog = (page: Page, verb: string) =>
  page.getByRole('dialog').getByRole('button', { name: verb, exact: true });

const closed = (page: Page) => page.getByRole('dialog').waitFor({ state: 'detached' });

test('a node is banned with the reason, and the ban is lifted', async () => {
  const page = await visit(`/nodes/${address}`);
  await page.getByRole('button', { name: 'Ban', exact: true }).click();
  await page.getByLabel('Why the node is banned').fill('smoke');
  expect(await get(`${path}/@banned`)).toBe(false);
  await inDialog(page, 'Ban').click();
  await closed(page);
  expect([await get(`${path}/@banned`), await get(`${path}/@ban_message`)]).toEqual([true, 'smoke']);
  await page.locator('.page__head').getByText('banned', { exact: true }).first().waitFor();
  await page.getByText('smoke').first().waitFor();
  expect(await findings(page)).toEqual([]);

  const map = await visit('/nodes');
  await map.getByRole('region', { name: address }).getByText('banned').first().waitFor();

  await page.getByRole('button', { name: 'Lift the ban' }).click();
  await inDialog(page, 'Lift').click();
  await closed(page);
  expect(await get(`${path}/@banned`)).toBe(false);
  await page.getByText('smoke').first().waitFor({ state: 'detached' });
});

test('a node takes no new jobs, and takes them again', async () => {
  const page = await visit(`/nodes/${address}`);
  await page.getByRole('button', { name: 'Take no new jobs' }).click();
  await inDialog(page, 'Disable').click();
  await page.getByText('no new jobs', { exact: true }).waitFor();
  expect(await get(`${path}/@disable_scheduler_jobs`)).toBe(true);
  await page.getByRole('button', { name: 'Allow jobs' }).click();
  await inDialog(page, 'Allow').click();
  await page.getByRole('button', { name: 'Take no new jobs' }).waitFor();
  expect(await get(`${path}/@disable_scheduler_jobs`)).toBe(false);
});

test('tags and limits of a node: refused where they are wrong, then saved', async () => {
  const page = await visit(`/nodes/${address}`);
  const open = () => page.getByRole('button', { name: 'Tags and limits' }).click();
  await open();
  const save = inDialog(page, 'Save');
  expect(await save.isDisabled()).toBe(true);
  await page.locator('#node-cpu').fill('many');
  await page.getByText('Expected a number, found "many"').waitFor();
  expect(await save.isDisabled()).toBe(true);
  await page.locator('#node-cpu').fill('3');
  await page.locator('#node-memory').fill('2GiB');
  await page.locator('#node-tags').fill('fast, e2e');
  expect(await findings(page)).toEqual([]);
  await save.click();
  await closed(page);
  expect(await get(`${path}/@user_tags`)).toEqual(['e2e', 'fast']);
  expect(await get(`${path}/@resource_limits_overrides`)).toEqual({ cpu: 3, memory: 2 * 1024 ** 3 });
  await page.getByText(/of 3/).first().waitFor();

  // What the server refuses is shown where it was asked for, and stays to be corrected.
  await open();
  await page.locator('#node-cpu').fill('-1');
  await save.click();
  await page.getByRole('dialog').getByRole('alert').waitFor();
  expect(await get(`${path}/@resource_limits_overrides/cpu`)).toBe(3);
  await page.locator('#node-cpu').fill('');
  await page.locator('#node-memory').fill('');
  await page.locator('#node-tags').fill('');
  await save.click();
  await closed(page);
  expect(await get(`${path}/@resource_limits_overrides`)).toEqual({});
  expect(await get(`${path}/@user_tags`)).toEqual([]);
});
