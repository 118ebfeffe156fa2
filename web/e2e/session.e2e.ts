/**
 * Who is here: a real server that asks, with people, passwords and rights of their own. Nothing is imitated.
 * Ann has the pool `hers` and an operation in it; Bob may look; Sue is a superuser.
 */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { commandAt, eventually, findings, useBrowser, visit } from './harness';

useBrowser();

const API = process.env['GUARDED_URL'] ?? '';
const PAGE = process.env['GUARDED_PAGE'] ?? API;
const TOKEN = process.env['GUARDED_TOKEN'] ?? '';

const asRoot = <T = unknown>(name: string, parameters: object): Promise<T> =>
  commandAt<T>(API, { Authorization: `OAuth ${TOKEN}` }, name, parameters);

const get = async <T>(path: string): Promise<T> => (await asRoot<{ value: T }>('get', { path })).value;
const set = (path: string, input: unknown): Promise<unknown> =>
  asRoot('execute_batch', { requests: [{ command: 'set', parameters: { path }, input }] });

const POOLS = '//sys/pool_trees/physical';
const passwordOf = (user: string): string => `the password of ${user}: ä`;

let operation = '';
let job = '';

beforeAll(async () => {
  for (const user of ['ann', 'bob', 'sue']) {
    await asRoot('create', { type: 'user', attributes: { name: user }, ignore_existing: true });
    await asRoot('set_user_password', {
      user,
      new_password_sha256: createHash('sha256').update(passwordOf(user)).digest('hex'),
    });
  }
  const superusers = await get<string[]>('//sys/groups/superusers/@members');
  if (!superusers.includes('sue')) await asRoot('add_member', { group: 'superusers', member: 'sue' });
  for (const name of ['hers', 'not-hers']) {
    const acl = [{ action: 'allow', subjects: ['ann'], permissions: ['use', 'write', 'administer'] }];
    await asRoot('create', {
      type: 'scheduler_pool',
      ignore_existing: true,
      attributes: { name, pool_tree: 'physical', ...(name === 'hers' ? { acl } : {}) },
    });
  }
  operation = await startAs('ann', 'of ann');
  const jobs = () =>
    asRoot<{ jobs: { id: string; state: string }[] }>('list_jobs', { operation_id: operation });
  const { jobs: all } = await eventually(jobs, answer => answer.jobs.some(one => one.state === 'running'));
  job = all.find(one => one.state === 'running')?.id ?? '';
});

async function startAs(user: string, title: string): Promise<string> {
  const headers = { Authorization: `OAuth ${TOKEN}`, 'X-YT-User-Name': user };
  const tasks = { work: { command: 'echo secret >&2; sleep 3600', job_count: 1, memory_limit: 64 << 20 } };
  const { operation_id } = await commandAt<{ operation_id: string }>(API, headers, 'start_operation', {
    operation_type: 'vanilla',
    spec: { pool: 'hers', title, tasks },
  });
  return operation_id;
}

/** What a browser says of refused requests; the page shows them itself. */
const REFUSED = [/status of 40[013]/];

const open = (path: string): Promise<Page> => visit(PAGE + path, {}, REFUSED);

const form = (page: Page) => page.getByRole('heading', { name: 'Sign in to Millpond' });

async function fill(page: Page, user: string, password: string): Promise<void> {
  await page.getByLabel('User', { exact: true }).fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

type State = Awaited<ReturnType<BrowserContext['storageState']>>;
const sessions = new Map<string, State>();

/** A page of somebody who has signed in; the session is one for all tests, unless it is to be a new one. */
async function as(user: string, path: string, session: 'shared' | 'new' = 'shared'): Promise<Page> {
  const storageState = session === 'shared' ? sessions.get(user) : undefined;
  const page = await visit(PAGE + path, storageState === undefined ? {} : { storageState }, REFUSED);
  if (storageState === undefined) {
    await form(page).waitFor();
    await fill(page, user, passwordOf(user));
  }
  await page.getByRole('button', { name: `Signed in as ${user}` }).waitFor();
  if (session === 'shared') sessions.set(user, await page.context().storageState());
  return page;
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

describe('signing in', () => {
  test('with a wrong password and the right one; one is where one was going; and out again', async () => {
    const page = await open('/scheduling/physical/hers?tab=attributes');
    await form(page).waitFor();
    expect(await findings(page)).toEqual([]);
    expect(await button(page, 'Sign in').isDisabled()).toBe(true);
    await fill(page, 'ann', 'wrong');
    await page.getByText(/the user or the password is wrong/).waitFor();
    expect(await page.getByLabel('Password').inputValue()).toBe('');
    expect(await findings(page)).toEqual([]);
    await fill(page, 'ann', passwordOf('ann'));
    await page.getByRole('heading', { name: 'hers' }).waitFor();
    await page.getByText('parent_name').first().waitFor();

    await page.getByRole('button', { name: 'Signed in as ann' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await form(page).waitFor();
    // The session is over for the server too, not only out of sight.
    await page.reload();
    await form(page).waitFor();
  });

  test('with a token, in the dark', async () => {
    const page = await visit(`${PAGE}/system`, { colorScheme: 'dark' }, REFUSED);
    await form(page).waitFor();
    await button(page, 'With a token').click();
    await page.getByLabel('Token').fill('nonsense');
    await page.keyboard.press('Enter');
    await page.getByText(/the token is not known/).waitFor();
    expect(await findings(page)).toEqual([]);
    await page.getByLabel('Token').fill(TOKEN);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'System' }).waitFor();
    await page.getByRole('button', { name: 'Signed in as root' }).waitFor();
  });

  test('a session that ends while the page is open leads to the form, and back', async () => {
    const page = await as('ann', '/operations?user=ann', 'new');
    await page.getByText('of ann').first().waitFor();
    // Somebody signs out with the same cookie in another window.
    const context = page.context();
    const other = await context.newPage();
    await other.goto(`${PAGE}/nodes`);
    await other.getByRole('button', { name: 'Signed in as ann' }).click();
    await other.getByRole('menuitem', { name: 'Sign out' }).click();
    await form(other).waitFor();
    await form(page).waitFor();
    await fill(page, 'ann', passwordOf('ann'));
    await page.getByText('of ann').first().waitFor();
    expect(new URL(page.url()).search).toBe('?user=ann');
  });

  test('who is banned is told so', async () => {
    const page = await as('bob', '/nodes', 'new');
    await set('//sys/users/bob/@banned', true);
    try {
      await page.reload();
      await page.getByText('User "bob" is banned').first().waitFor();
      expect(await findings(page)).toEqual([]);
    } finally {
      await set('//sys/users/bob/@banned', false);
    }
  });
});

test('a cookie alone changes nothing: the page sends what goes with it', async () => {
  const page = await as('ann', `/operations/${operation}`);
  const alone = await page.evaluate(async id => {
    const response = await fetch('/api/v4/suspend_operation', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ operation_id: id }),
    });
    return [response.status, ((await response.json()) as { code: number }).code];
  }, operation);
  expect(alone).toEqual([401, 110]);
  await button(page, 'Suspend').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click();
  await button(page, 'Resume').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click();
  await button(page, 'Suspend').waitFor();
});

interface Case {
  page: string;
  path: () => string;
  /** When this can be read, everything is there. */
  shown: string;
  buttons: string[];
  who: string[];
}

const CASES: Case[] = [
  {
    page: 'scheduling',
    path: () => '/scheduling',
    shown: 'not-hers',
    buttons: ['Create pool'],
    who: ['sue'],
  },
  {
    page: 'her pool',
    path: () => '/scheduling/physical/hers',
    shown: 'Operations and mode',
    buttons: ['Edit', 'Pool inside'],
    who: ['ann', 'sue'],
  },
  {
    page: 'a pool that is not hers',
    path: () => '/scheduling/physical/not-hers',
    shown: 'Operations and mode',
    buttons: ['Edit', 'Remove', 'Move quota', 'Pool inside'],
    who: ['sue'],
  },
  {
    page: 'her operation',
    path: () => `/operations/${operation}`,
    shown: 'In tree physical',
    buttons: ['Abort', 'Suspend', 'Complete', 'Pool, weight, limits'],
    who: ['ann', 'sue'],
  },
  {
    page: 'her job',
    path: () => `/operations/${operation}/jobs/${job}`,
    shown: 'Unit of work',
    buttons: ['Abort'],
    who: ['ann', 'sue'],
  },
  {
    page: 'the tree',
    path: () => '/tree?path=//sys/pool_trees',
    shown: 'physical',
    buttons: ['Create inside', 'Remove'],
    who: ['sue'],
  },
];

describe.each(['ann', 'bob', 'sue'])('%s is offered what the server lets them do', user => {
  test.each(CASES)('$page', async ({ path, shown, buttons, who }) => {
    const page = await as(user, path());
    await page.getByText(shown).first().waitFor();
    if (who.includes(user)) {
      for (const name of buttons) await button(page, name).first().waitFor();
    } else {
      // Until every question about rights is answered nothing would be offered to anybody.
      await page.waitForLoadState('load');
      await eventually(
        () => page.evaluate(() => document.querySelectorAll('.g-skeleton, [aria-busy=true]').length),
        n => n === 0,
      );
      await page.waitForTimeout(1_000);
      for (const name of buttons) expect([name, await button(page, name).count()]).toEqual([name, 0]);
    }
    // How everything looks to those who may is looked at elsewhere.
    if (user === 'bob') expect(await findings(page)).toEqual([]);
  });
});

test('the manager of a pool changes it, and is refused when that has been taken back', async () => {
  const page = await as('ann', '/scheduling/physical/hers');
  await button(page, 'Edit').click();
  await page.locator('#pool-weight').fill('3');
  await button(page, 'Save').click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(await get(`${POOLS}/hers/@weight`)).toBe(3);

  const acl = await get(`${POOLS}/hers/@acl`);
  await button(page, 'Edit').click();
  await page.locator('#pool-weight').fill('4');
  await set(`${POOLS}/hers/@acl`, []);
  try {
    await button(page, 'Save').click();
    await page
      .getByRole('dialog')
      .getByText(/Access denied/)
      .first()
      .waitFor();
    expect(await get(`${POOLS}/hers/@weight`)).toBe(3);
    expect(await findings(page)).toEqual([]);
  } finally {
    await set(`${POOLS}/hers/@acl`, acl);
  }
});

test('what one may not read is refused in words, in its place', async () => {
  const page = await as('bob', `/operations/${operation}/jobs/${job}?tab=output`);
  await page
    .getByText(/Access denied/)
    .first()
    .waitFor();
  expect(await findings(page)).toEqual([]);
  expect(await page.getByText('secret').count()).toBe(0);
});

test('the server has the last word, and it is shown', async () => {
  const id = await startAs('ann', 'ends elsewhere');
  const page = await as('ann', `/operations/${id}`);
  await button(page, 'Abort').waitFor();
  await asRoot('abort_operation', { operation_id: id });
  await page.getByText('aborted').first().waitFor();
  await button(page, 'Abort').waitFor({ state: 'detached' });
});

test('a node that waits for an approval is let in by an administrator', async () => {
  const data = mkdtempSync(join(tmpdir(), 'millpond-e2e-'));
  const binary = process.env['MILLPOND_BINARY'] ?? '../target/release/millpond';
  const server = new URL(API).host;
  const node = spawn(binary, [
    'node',
    'join',
    '--server',
    server,
    '--name',
    'stranger',
    '--data',
    join(data, 'node'),
  ]);
  let said = '';
  node.stderr.on('data', (text: Buffer) => (said += text.toString()));
  const ended = new Promise<number | null>(resolve => node.on('exit', resolve));
  try {
    const logged = await eventually(
      () => Promise.resolve(/must show the key ([0-9a-f]{64})/.exec(said)?.[1]),
      key => key !== undefined,
    );
    const bobs = await as('bob', '/nodes');
    await bobs.getByRole('heading', { name: 'Nodes' }).waitFor();
    const page = await as('sue', '/nodes');
    const waiting = page.getByRole('list', { name: 'Nodes that wait for an approval' });
    await waiting.getByText(logged ?? '').waitFor();
    expect(await findings(page)).toEqual([]);
    expect(await bobs.getByText('stranger').count()).toBe(0);
    await waiting.getByRole('button', { name: 'Approve' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Approve', exact: true }).click();
    expect(await ended).toBe(0);
    await waiting.waitFor({ state: 'detached' });
  } finally {
    node.kill();
    await asRoot('revoke_node', { name: 'stranger' });
    rmSync(data, { recursive: true });
  }
});
