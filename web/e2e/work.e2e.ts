/** What people do with the page, and what becomes of it on the server. */

import { beforeAll, expect, test } from 'vitest';
import {
  choose,
  command,
  eventually,
  get,
  lineToServer,
  makePool,
  startOperation,
  stateOf,
  useBrowser,
  visit,
} from './harness';

useBrowser();

const POOLS = '//sys/pool_trees/physical';

beforeAll(async () => {
  await makePool('parent', { strong_guarantee_resources: { cpu: 4 } });
  await makePool('child', { parent_name: 'parent', strong_guarantee_resources: { cpu: 2 } });
  await makePool('quiet');
});

test('a pool is watched live while operations start and end', async () => {
  const page = await visit('/scheduling/physical/quiet');
  const running = page.locator('section', { hasText: 'Operations and mode' }).locator('.gauge__text').first();
  await eventually(
    () => running.innerText(),
    text => text.startsWith('0 of'),
  );
  const id = await startOperation('quiet', 'appears', { job_count: 2 });
  await eventually(
    () => running.innerText(),
    text => text.startsWith('1 of'),
  );
  const usage = page
    .locator('dt', { hasText: /^Usage$/ })
    .first()
    .locator('xpath=following-sibling::dd[1]');
  await eventually(
    () => usage.innerText(),
    text => text.includes('2 cores'),
  );
  await command('abort_operation', { operation_id: id });
  await eventually(
    () => running.innerText(),
    text => text.startsWith('0 of'),
  );
});

test('a guarantee is edited: refused with the reason at its field, then accepted', async () => {
  const page = await visit('/scheduling/physical/parent');
  await page.getByRole('button', { name: 'Edit' }).click();
  const cpu = page.locator('[id="pool-strong_guarantee_resources/cpu"]');
  const save = page.getByRole('button', { name: 'Save' });
  await cpu.fill('1');
  await save.click();
  await page.getByText(/less than the sum of children guarantees/).waitFor();
  expect(await cpu.getAttribute('aria-invalid')).toBe('true');
  expect(await get(`${POOLS}/parent/@strong_guarantee_resources/cpu`)).toBe(4);
  await cpu.fill('not a number');
  expect(await save.isDisabled()).toBe(true);
  await cpu.fill('3');
  await save.click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  expect(await get(`${POOLS}/parent/@strong_guarantee_resources/cpu`)).toBe(3);
});

test('a pool is made, opened, and removed', async () => {
  const page = await visit('/scheduling');
  await page.getByRole('button', { name: 'Create pool' }).click();
  await page.locator('#pool-name').fill('has space');
  await page.getByText(/only/).first().waitFor();
  await page.locator('#pool-name').fill('fresh');
  await page.locator('#pool-weight').fill('2.5');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('heading', { name: 'fresh' }).waitFor();
  expect(await get(`${POOLS}/fresh/@weight`)).toBe(2.5);
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.waitForURL(/\/scheduling/);
  await eventually(
    () => command<{ value: boolean }>('exists', { path: `${POOLS}/fresh` }),
    answer => !answer.value,
  );
});

test('quota is moved to another pool', async () => {
  await makePool('giver', { strong_guarantee_resources: { cpu: 2 } });
  await makePool('taker', { strong_guarantee_resources: { cpu: 1 } });
  const page = await visit('/scheduling/physical/giver');
  await page.getByRole('button', { name: 'Move quota' }).click();
  const dialog = page.getByRole('dialog');
  await choose(page, 'To', 'taker');
  const cpu = dialog.getByLabel('Strong guarantee: CPU');
  await cpu.fill('5');
  await dialog.getByRole('button', { name: 'Move' }).click();
  await dialog.getByRole('alert').waitFor();
  await cpu.fill('0.5');
  await dialog.getByRole('button', { name: 'Move' }).click();
  await dialog.waitFor({ state: 'detached' });
  expect(await get(`${POOLS}/taker/@strong_guarantee_resources/cpu`)).toBe(1.5);
  expect(await get(`${POOLS}/giver/@strong_guarantee_resources/cpu`)).toBe(1.5);
});

test('an operation is aborted after a question', async () => {
  const id = await startOperation('quiet', 'unwanted');
  const page = await visit(`/operations/${id}`);
  await page.getByRole('button', { name: 'Abort' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Why it is aborted').fill('wrong input');
  // It is not aborted yet. Until it has a job it is only on its way to this state.
  await eventually(
    () => stateOf(id),
    state => state === 'running',
  );
  await dialog.getByRole('button', { name: 'Abort' }).click();
  await eventually(
    () => stateOf(id),
    state => state === 'aborted',
  );
  await page.getByText('wrong input').first().waitFor();
});

test('suspended, resumed, moved to another pool', async () => {
  const id = await startOperation('quiet', 'moves');
  const page = await visit(`/operations/${id}`);
  await page.getByRole('button', { name: 'Suspend' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Suspend' }).waitFor();
  await page.getByRole('button', { name: 'Pool, weight, limits' }).click();
  await page.locator('#operation-weight').fill('7');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('weight 7').first().waitFor();
  await command('abort_operation', { operation_id: id });
});

test('a job’s output is read while it runs, and the job is aborted', async () => {
  const id = await startOperation('quiet', 'prints', { command: 'echo a word from the job >&2; sleep 3600' });
  const page = await visit(`/operations/${id}?tab=jobs`);
  await page.getByRole('row').nth(1).getByRole('link').first().click();
  await page.getByRole('tab', { name: 'Output' }).click();
  await page.getByText('a word from the job').waitFor();
  await page.getByRole('button', { name: 'Abort' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Abort' }).click();
  await page.getByText('user request').first().waitFor();
  await command('abort_operation', { operation_id: id });
});

test('an operation is submitted from the form', async () => {
  const page = await visit('/submit?pool=quiet');
  await page.locator('#submit-title').fill('from the form: ä');
  await page.locator('#submit-command').fill('echo "$YT_JOB_COOKIE" >&2');
  await page.locator('#submit-jobs').fill('3');
  await page.getByRole('button', { name: 'yt', exact: true }).click();
  await page
    .getByText(/vanilla/)
    .first()
    .waitFor();
  await page.getByRole('button', { name: 'Start' }).click();
  await page.getByRole('heading', { name: 'from the form: ä' }).waitFor();
  await page.getByText('completed').first().waitFor();
  await page.getByText('3 of 3').waitFor();
});

test('the link that the client prints leads to the operation', async () => {
  const id = await startOperation('quiet', 'linked');
  const page = await visit(`/?page=operation&mode=detail&id=${id}&tab=details`);
  await page.getByRole('heading', { name: 'linked' }).waitFor();
  expect(new URL(page.url()).pathname).toBe(`/operations/${id}`);
  await command('abort_operation', { operation_id: id });
});

test('a server that goes away is noticed, and its return', async () => {
  const page = await visit('/scheduling', {}, [/ERR_FAILED|ERR_ABORTED|Failed to load/]);
  await page.getByText('parent').first().waitFor();
  await page.route('**/api/**', route => route.abort());
  await page.getByRole('button', { name: /The server does not answer/ }).waitFor();
  // What was known stays to be read.
  expect(await page.getByText('parent').first().isVisible()).toBe(true);
  await page.unroute('**/api/**');
  await page.getByRole('button', { name: /^Live/ }).waitFor();
});

test('a view is in its address: filter, sort order, open pools', async () => {
  const page = await visit('/scheduling');
  await page.getByText('parent').first().waitFor();
  await page.getByRole('button', { name: 'Weight' }).click();
  await page.getByRole('button', { name: 'Close parent' }).click();
  await page.getByPlaceholder('Filter pools by name').fill('qui');
  await page.waitForURL(/filter=qui/);
  const address = page.url();
  expect(address).toContain('sort=-weight');
  expect(address).toContain('open=parent');
  const again = await visit(new URL(address).pathname + new URL(address).search);
  await again.getByText('quiet').first().waitFor();
  await eventually(
    () => again.getByRole('row').count(),
    count => count === 2,
  );
});

test('by keyboard alone', async () => {
  const page = await visit('/scheduling?filter=quiet');
  await page.getByRole('link', { name: 'quiet' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'quiet' }).waitFor();
  await page.getByRole('tab', { name: 'Overview' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await page.getByText(/is entitled to/).waitFor();
});

test('the menu of a row by keyboard', async () => {
  const page = await visit('/scheduling?filter=quiet');
  await page.getByRole('button', { name: 'Actions for quiet' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('menuitem', { name: 'Open', exact: true }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'quiet' }).waitFor();
});

test('dark and light are remembered', async () => {
  const page = await visit('/scheduling', { colorScheme: 'light' });
  const theme = page.getByRole('button', { name: /^Colours/ });
  await theme.click();
  await theme.click();
  await page.locator('.g-root_theme_dark').first().waitFor();
  await page.reload();
  await page.locator('.g-root_theme_dark').first().waitFor();
});

test('the stream of events breaks: the page goes on by the clock, then returns to the stream', async () => {
  const line = await lineToServer();
  try {
    const page = await visit(`${line.url}/scheduling/physical/quiet`, {}, [/ERR_|Failed to load/]);
    const by = (source: RegExp) => page.getByRole('button', { name: source }).waitFor();
    const running = page
      .locator('section', { hasText: 'Operations and mode' })
      .locator('.gauge__text')
      .first();
    const runs = (count: number) =>
      eventually(
        () => running.innerText(),
        text => text.startsWith(`${count} of`),
      );
    await by(/the server says what changes/);
    line.cutStreams();
    await by(/the page asks every two seconds/);
    const id = await startOperation('quiet', 'seen by the clock');
    await runs(1);
    line.mend();
    await by(/the server says what changes/);
    await command('abort_operation', { operation_id: id });
    await runs(0);
  } finally {
    line.close();
  }
});
