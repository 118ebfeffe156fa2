/** The list of operations: what its filters find and count, and its pages. */

import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  addressHas,
  choose,
  command,
  eventually,
  findings,
  makePool,
  rowsAre,
  rowsOf,
  settled,
  startOperation,
  stateOf,
  useBrowser,
  visit,
} from './harness';

useBrowser();

/** Somewhere in all titles of this file: the list has those of others, too. */
const MARK = 'sieve';

const state = (id: string, wanted: string) =>
  eventually(
    () => stateOf(id),
    now => now === wanted,
  );

const open = async (query: string): Promise<Page> => {
  const page = await visit(`/operations?filter=${MARK}${query}`);
  await settled(page);
  return page;
};

beforeAll(async () => {
  await makePool('coarse');
  await makePool('fine');
  const running = await startOperation('coarse', `${MARK} runs`, { cpu_limit: 0.1 });
  const failed = await startOperation(
    'fine',
    `${MARK} fails`,
    { command: 'exit 1', cpu_limit: 0.1 },
    { max_failed_job_count: 1 },
  );
  const done = await startOperation('fine', `${MARK} is done`, { command: 'true', cpu_limit: 0.1 });
  await state(running, 'running');
  await state(failed, 'failed');
  await state(done, 'completed');
});

describe('filters', () => {
  test('by state, pool and type, each with counts, and the address says so', async () => {
    const page = await open('');
    await rowsAre(page, 'Operations', 3, MARK);
    await choose(page, 'State', /^failed\s*1$/);
    await rowsAre(page, 'Operations', 1, `${MARK} fails`);
    await addressHas(page, { state: 'failed' });
    await page.getByRole('button', { name: 'Clear', exact: true }).first().waitFor();
    await choose(page, 'State', /^completed/);
    await rowsAre(page, 'Operations', 1, `${MARK} is done`);

    const pools = await open('');
    await choose(pools, 'Pool', /^fine\s*2$/);
    await rowsAre(pools, 'Operations', 2, 'fine');
    await choose(pools, 'Type', /^vanilla\s*2$/);
    await rowsAre(pools, 'Operations', 2, 'fine');
    await addressHas(pools, { type: 'vanilla' });
    expect(await findings(pools)).toEqual([]);
  });

  test('by user, and one’s own', async () => {
    const page = await open('');
    await choose(page, 'User', /^me\s*3$/);
    await page.waitForURL(/user=me/);
    await rowsAre(page, 'Operations', 3, 'root');
    await choose(page, 'User', /^root/);
    await page.waitForURL(/user=root/);
    await rowsAre(page, 'Operations', 3, 'root');
  });

  test('with failed jobs, and how many there are', async () => {
    const page = await open('');
    await page.getByText('With failed jobs (1)').click();
    await rowsAre(page, 'Operations', 1, `${MARK} fails`);
  });

  test('by time, and back to everything', async () => {
    const page = await open('');
    await rowsAre(page, 'Operations', 3, MARK);
    await page.getByLabel('To', { exact: true }).fill('2001-01-01T00:00');
    await page.getByText('No operation is as you look for').waitFor();
    await page.getByLabel('To', { exact: true }).fill('');
    await page.getByLabel('From', { exact: true }).fill('2001-01-01T00:00');
    await rowsAre(page, 'Operations', 3, MARK);
    await page.locator('.toolbar > button', { hasText: 'Clear' }).click();
    await eventually(
      async () => new URL(page.url()).search,
      query => query === '',
    );
  });

  test('by whom they are accessible for, to look and to change', async () => {
    for (const name of ['sieve-reader', 'sieve-stranger']) {
      await command('create', { type: 'user', attributes: { name }, ignore_existing: true });
    }
    const acl = [{ action: 'allow', subjects: ['sieve-reader'], permissions: ['read'] }];
    await startOperation('coarse', `${MARK} may be read`, { cpu_limit: 0.1 }, { acl });
    const page = await open('');
    const subject = page.getByLabel('Accessible for this user or group');
    await subject.fill('sieve-reader');
    await rowsAre(page, 'Operations', 1, 'may be read');
    await choose(page, 'To', /read and manage/);
    await page.getByText('No operation is as you look for').waitFor();
    expect(await findings(page)).toEqual([]);
    await choose(page, 'To', /^read$/);
    await rowsAre(page, 'Operations', 1, 'may be read');
    await subject.fill('sieve-stranger');
    await page.getByText('No operation is as you look for').waitFor();
  });
});

test('pages by time: older ones, newer ones, and the newest again', async () => {
  await makePool('many', { max_operation_count: 100 });
  // No node is that large: they wait, and cost nothing.
  for (let i = 0; i < 60; i += 1) {
    await startOperation('many', `page-${String(i).padStart(2, '0')}`, { cpu_limit: 1_000 });
  }
  const page = await visit('/operations?filter=page-');
  const table = page.getByRole('table', { name: 'Operations' });
  // Rows out of sight are not in the document.
  const counts = (rows: number) =>
    eventually(
      () => table.getAttribute('aria-rowcount'),
      count => Number(count) === rows + 1,
    );
  const first = () => rowsOf(page, 'Operations').first().innerText();
  await counts(50);
  await eventually(first, text => text.includes('page-59'));
  await page.getByRole('button', { name: 'Older' }).click();
  await counts(10);
  await eventually(first, text => text.includes('page-09'));
  expect(await page.getByRole('button', { name: 'Older' }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Newer' }).click();
  await counts(50);
  await eventually(first, text => text.includes('page-59'));
  await page.getByRole('button', { name: 'Older' }).click();
  await counts(10);
  await page.getByRole('button', { name: 'Newest' }).click();
  await counts(50);
  await eventually(
    async () => new URL(page.url()).search,
    query => query === '?filter=page-',
  );
});
