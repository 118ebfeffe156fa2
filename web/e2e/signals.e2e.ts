/** What the cluster says by itself: alerts of the scheduler, and what is learned of the memory of jobs. */

import { afterEach, expect, test } from 'vitest';
import {
  command,
  eventually,
  findings,
  makePool,
  startOperation,
  stateOf,
  useBrowser,
  visit,
} from './harness';

useBrowser();

const CONFIG = '//sys/pool_trees/physical/@config';

const set = (name: string, input: unknown): Promise<unknown> =>
  command('execute_batch', {
    requests: [{ command: 'set', parameters: { path: `${CONFIG}/${name}` }, input }],
  });
const unset = (name: string): Promise<unknown> =>
  command('remove', { path: `${CONFIG}/${name}`, force: true });

// An alert that stays would be seen by the tests of other files.
afterEach(async () => {
  await unset('no_such_option');
  await unset('default_parent_pool');
});

test('alerts of the scheduler come, are counted, say what is wrong, and go', async () => {
  const page = await visit('/scheduling');
  await page.getByRole('table').waitFor();
  // There may be others: the tests of other files promise more than a small cluster has.
  const alerts = page.locator('.alerts');
  const unknown = alerts.getByText(/no_such_option|nrecognized/).first();
  const missing = alerts.getByText(/nobody-made-it/).first();
  expect([await unknown.count(), await missing.count()]).toEqual([0, 0]);
  await set('no_such_option', 1);
  await alerts.waitFor();
  await set('default_parent_pool', 'nobody-made-it');
  await alerts.getByRole('button', { name: /^\d+ more alerts?$/ }).click();
  await unknown.waitFor();
  await missing.waitFor();
  await alerts.getByRole('button', { name: 'details' }).first().click();
  await alerts.getByText('alert_type').first().waitFor();
  expect(await findings(page)).toEqual([]);

  const system = await visit('/system');
  await system
    .getByText(/nobody-made-it/)
    .first()
    .waitFor();

  await unset('no_such_option');
  await unset('default_parent_pool');
  await unknown.waitFor({ state: 'detached' });
  await missing.waitFor({ state: 'detached' });
});

test('what a task has learned of the memory of its jobs, as a picture', async () => {
  await makePool('signals');
  const id = await startOperation('signals', 'learns', { command: 'true', job_count: 5 });
  await eventually(
    () => stateOf(id),
    state => state === 'completed',
  );
  const page = await visit(`/operations/${id}`);
  await page.getByText('Memory that jobs of work used').waitFor();
  const picture = page.getByRole('figure', { name: /^5 jobs ended/ });
  await picture.waitFor();
  expect(await picture.locator('.histogram__bar').count()).toBeGreaterThan(0);
  // The bars stand for all of the jobs.
  const titles = await picture
    .locator('.histogram__bar')
    .evaluateAll(bars => bars.map(bar => Number.parseInt(bar.getAttribute('title') ?? '', 10)));
  expect(titles.reduce((sum, n) => sum + n, 0)).toBe(5);
  await page.getByText(/reserves .* of its memory/).waitFor();
});
