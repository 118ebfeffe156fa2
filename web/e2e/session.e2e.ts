/** Who is here: the form in front, the way back, and what people without rights are offered. */

import { AxeBuilder } from '@axe-core/playwright';
import type { Page, Route } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { command, makePool, startOperation, useBrowser, visit } from './harness';

useBrowser();

let operation = '';

beforeAll(async () => {
  await makePool('guarded');
  operation = await startOperation('guarded', 'of somebody else');
});

/** The page believes that this is who is here; the server of this test knows no users. */
async function as(page: Page, session: { login: string; superuser: boolean } | null): Promise<void> {
  await page.unroute('**/auth/whoami');
  await page.route('**/auth/whoami', route =>
    session === null
      ? route.fulfill({
          status: 401,
          json: { code: 111, message: 'Sign in', attributes: {}, inner_errors: [] },
        })
      : route.fulfill({ json: { ...session, auth: true, realm: 'millpond', csrf_token: 'c5rf' } }),
  );
}

/** Questions about rights are answered with no, the others by the server. */
async function forbid(page: Page): Promise<void> {
  await page.route('**/api/v4/execute_batch', async (route: Route) => {
    const { requests } = route.request().postDataJSON() as { requests: { command: string }[] };
    const allowed = requests.filter(({ command: name }) => !name.startsWith('check_'));
    const reply = await route.fetch({ postData: JSON.stringify({ requests: allowed }) });
    const { results } = (await reply.json()) as { results: unknown[] };
    const all = requests.map(({ command: name }) =>
      name.startsWith('check_') ? { output: { action: 'deny' } } : results.shift(),
    );
    await route.fulfill({ json: { results: all } });
  });
}

const UNAUTHORIZED = [/401/];

test('one signs in, is where one was going, and signs out', async () => {
  const page = await visit('about:blank', {}, UNAUTHORIZED);
  await as(page, null);
  const { PAGE_URL = '' } = process.env;
  await page.goto(`${PAGE_URL}/scheduling/physical/guarded`);
  await page.getByRole('heading', { name: 'Sign in to Millpond' }).waitFor();
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')).toEqual([]);

  const sent: unknown[] = [];
  await page.route('**/login', route => {
    if (route.request().method() !== 'POST') return route.continue();
    sent.push(route.request().postDataJSON());
    return sent.length === 1
      ? route.fulfill({
          status: 401,
          json: { code: 111, message: 'Wrong user or password', attributes: {}, inner_errors: [] },
        })
      : as(page, { login: 'ann', superuser: true }).then(() => route.fulfill({ json: {} }));
  });
  const button = page.getByRole('button', { name: 'Sign in' });
  expect(await button.isDisabled()).toBe(true);
  await page.getByLabel('User').fill('ann');
  await page.getByLabel('Password').fill('wrong');
  await button.click();
  await page.getByText('Wrong user or password').waitFor();
  expect(await page.getByLabel('Password').inputValue()).toBe('');
  await page.getByLabel('Password').fill('right');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'guarded' }).waitFor();
  expect(sent).toEqual([
    { user: 'ann', password: 'wrong' },
    { user: 'ann', password: 'right' },
  ]);

  const tokens: (string | undefined)[] = [];
  page.on('request', request => {
    if (request.url().endsWith('/execute_batch')) tokens.push(request.headers()['x-csrf-token']);
  });
  await page.getByRole('link', { name: 'Operations', exact: true }).click();
  await page.getByText('of somebody else').first().waitFor();
  expect(new Set(tokens)).toEqual(new Set(['c5rf']));

  await page.route('**/logout', route => as(page, null).then(() => route.fulfill({ json: {} })));
  await page.getByRole('button', { name: 'Signed in as ann' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Millpond' }).waitFor();
});

test('a session that ends while the page is open leads to the form', async () => {
  const page = await visit('about:blank', {}, UNAUTHORIZED);
  await as(page, { login: 'ann', superuser: true });
  await page.goto(`${process.env['PAGE_URL']}/operations`);
  await page.getByText('of somebody else').first().waitFor();
  await as(page, null);
  await page.route('**/api/v4/execute_batch', route =>
    route.fulfill({ status: 401, json: { code: 111, message: 'Sign in', attributes: {}, inner_errors: [] } }),
  );
  await page.getByRole('link', { name: 'Nodes', exact: true }).click();
  await page.getByRole('heading', { name: 'Sign in to Millpond' }).waitFor();
});

test.each([
  ['/scheduling', () => '/scheduling', 'Scheduling', ['Create pool']],
  [
    'a pool',
    () => '/scheduling/physical/guarded',
    'guarded',
    ['Edit', 'Remove', 'Move quota', 'Pool inside'],
  ],
  ['an operation', () => `/operations/${operation}`, 'of somebody else', ['Abort', 'Suspend', 'Complete']],
  ['the tree', () => '/tree?path=//sys/pool_trees', 'Tree', ['Create inside', 'Remove']],
])('who may do nothing is offered nothing: %s', async (_, path, heading, names) => {
  const offered = (page: Page) =>
    Promise.all(names.map(name => page.getByRole('button', { name, exact: true }).count()));
  const root = await visit(path());
  await root.getByRole('heading', { name: heading }).waitFor();
  for (const name of names) await root.getByRole('button', { name, exact: true }).waitFor();

  const page = await visit('about:blank');
  await as(page, { login: 'guest', superuser: false });
  await forbid(page);
  await page.goto(`${process.env['PAGE_URL']}${path()}`);
  await page.getByRole('heading', { name: heading }).waitFor();
  await page.waitForTimeout(1_500);
  expect(await offered(page)).toEqual(names.map(() => 0));
});

test('the server has the last word, and it is shown', async () => {
  await command('abort_operation', { operation_id: operation });
  const page = await visit(`/operations/${operation}`);
  await page.getByText('aborted').first().waitFor();
  expect(await page.getByRole('button', { name: 'Abort', exact: true }).count()).toBe(0);
});
