/** Lists: what the filters of jobs find, what the menus of rows do, and the fields that lead somewhere. */

import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  addressHas,
  choose,
  command,
  eventually,
  findings,
  get,
  inDialog,
  makePool,
  rowsAre,
  rowsOf,
  startOperation,
  stateOf,
  take,
  useBrowser,
  visit,
} from './harness';
import { shortId } from '../src/model/format';

useBrowser();

const POOLS = '//sys/pool_trees/physical';

interface Job {
  id: string;
  state: string;
  address: string;
  task_name: string;
  operation_incarnation?: string;
  interruption_info?: { interruption_reason?: string };
}

const jobsOf = async (operation: string): Promise<Job[]> =>
  (await command<{ jobs: Job[] }>('list_jobs', { operation_id: operation })).jobs;

beforeAll(async () => {
  await makePool('lists');
  await makePool('menus');
});

describe('jobs', () => {
  let mixed = '';
  let steady: Job[] = [];

  beforeAll(async () => {
    const task = (text: string, more: object = {}) => ({
      command: text,
      job_count: 2,
      cpu_limit: 0.5,
      memory_limit: 64 << 20,
      ...more,
    });
    const polite = 'trap "exit 0" INT; while :; do sleep 0.1; done';
    mixed = (
      await command<{ operation_id: string }>('start_operation', {
        operation_type: 'vanilla',
        spec: {
          pool: 'lists',
          title: 'of every kind',
          tasks: {
            steady: task('sleep 3600'),
            quick: task('echo done >&2'),
            polite: task(polite, { job_count: 1, interruption_signal: 'SIGINT' }),
          },
        },
      })
    ).operation_id;
    const jobs = await eventually(
      () => jobsOf(mixed),
      all =>
        all.filter(job => job.task_name === 'quick' && job.state === 'completed').length === 2 &&
        all.filter(job => job.task_name !== 'quick' && job.state === 'running').length === 3,
    );
    steady = jobs.filter(job => job.task_name === 'steady');
    const asked = jobs.find(job => job.task_name === 'polite')?.id;
    await command('abort_job', { job_id: asked, interrupt_timeout: 20_000 });
    await eventually(
      () => jobsOf(mixed),
      all => all.some(job => job.id === asked && job.interruption_info?.interruption_reason !== undefined),
    );
  });

  const open = async (query = ''): Promise<Page> => {
    const page = await visit(`/operations/${mixed}?tab=jobs${query}`);
    await rowsOf(page, 'Jobs').first().waitFor();
    return page;
  };

  test('are found by state and task, with counts, and the address says so', async () => {
    const page = await open();
    await choose(page, 'Task', /^quick/);
    await choose(page, 'State', /^completed \(\d+\)/);
    await rowsAre(page, 'Jobs', 2, 'quick');
    await addressHas(page, { state: 'completed', task: 'quick' });
    await choose(page, 'Task', /^steady/);
    await page.getByText('No job is as you look for').waitFor();
    expect(await findings(page)).toEqual([]);
  });

  test('are found by node, by a part of the id, and by what they have', async () => {
    const page = await open('&task=steady');
    await rowsAre(page, 'Jobs', 2, 'steady');
    const [one, other] = steady as [Job, Job];
    await page.getByLabel('Filter jobs by id').fill(one.id.slice(2, 20));
    await rowsAre(page, 'Jobs', 1, shortId(one.id));
    await page.getByLabel('Filter jobs by id').fill('');
    await rowsAre(page, 'Jobs', 2, 'steady');
    await page.getByLabel('Filter jobs by node').fill(one.address);
    await rowsAre(page, 'Jobs', one.address === other.address ? 2 : 1, one.address);
    await page.getByLabel('Filter jobs by node').fill('nowhere');
    await page.getByText('No job is as you look for').waitFor();
    const printed = await open('&task=quick&with=stderr');
    await rowsAre(printed, 'Jobs', 2, 'B');
    const told = await open('&with=interruption_info');
    await rowsAre(told, 'Jobs', 1, 'polite');
  });

  test('are sorted by a click on a head, times the newest first', async () => {
    const page = await open();
    const tasks = async () =>
      (await rowsOf(page, 'Jobs').allInnerTexts()).map(row => /polite|quick|steady/.exec(row)?.[0] ?? '');
    const clickThen = async (head: string, address: RegExp, order: (a: string, b: string) => number) => {
      await page.getByRole('button', { name: head, exact: true }).click();
      await page.waitForURL(address);
      await eventually(tasks, names => names.join() === [...names].sort(order).join());
    };
    await clickThen('Task', /sort=task_name/, (a, b) => a.localeCompare(b));
    await clickThen('Task', /sort=-task_name/, (a, b) => b.localeCompare(a));
    await page.getByRole('button', { name: 'Started', exact: true }).click();
    await page.waitForURL(/sort=-start_time/);
    await page.getByRole('button', { name: 'Started', exact: true }).click();
    await page.waitForURL(/sort=start_time/);
  });

  test('a menu of a row asks, and then aborts the job', async () => {
    const id = await startOperation('lists', 'has a menu');
    const running = (jobs: Job[]) => jobs.find(job => job.state === 'running');
    const job = running(
      await eventually(
        () => jobsOf(id),
        jobs => running(jobs) !== undefined,
      ),
    );
    const page = await visit(`/operations/${id}?tab=jobs`);
    await take(page, `job ${job?.id}`, 'Shell');
    await page.getByText(`run-job-shell ${job?.id}`).waitFor();
    await inDialog(page, 'Done').click();
    await take(page, `job ${job?.id}`, 'Abort');
    await inDialog(page, 'Abort').click();
    await page.getByText('user request').first().waitFor();
    await command('abort_operation', { operation_id: id });
  });

  test('of a gang are found by their incarnation', async () => {
    const id = await startOperation('lists', 'all or none', {
      job_count: 2,
      cpu_limit: 0.5,
      gang_options: {},
    });
    const all = (jobs: Job[]) => jobs.filter(job => job.state === 'running');
    const first = all(
      await eventually(
        () => jobsOf(id),
        jobs => all(jobs).length === 2,
      ),
    );
    await command('abort_job', { job_id: first[0]?.id });
    const old = first[0]?.operation_incarnation ?? '';
    const next = await eventually(
      () => jobsOf(id),
      jobs => all(jobs).filter(job => job.operation_incarnation !== old).length === 2,
    );
    const page = await visit(`/operations/${id}?tab=jobs`);
    await choose(page, 'Incarnation', new RegExp(`^${old}`));
    await rowsAre(page, 'Jobs', 2, 'aborted');
    await page.getByRole('button', { name: 'Actions for' }).waitFor({ state: 'detached' });
    await choose(page, 'Incarnation', new RegExp(`^${all(next)[0]?.operation_incarnation}`));
    await rowsAre(page, 'Jobs', 2, 'running');
    await command('abort_operation', { operation_id: id });
  });
});

describe('menus of rows', () => {
  test('of a pool: edited, a pool made inside, removed, its operations', async () => {
    await makePool('row');
    const page = await visit('/scheduling?filter=row');
    await take(page, 'row', 'Edit');
    await page.locator('#pool-weight').fill('6');
    await inDialog(page, 'Save').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await get(`${POOLS}/row/@weight`)).toBe(6);

    await take(page, 'row', 'Create a pool inside');
    await page.locator('#pool-name').fill('row-inside');
    await inDialog(page, 'Create').click();
    await page.getByRole('link', { name: 'row-inside' }).waitFor();
    expect(await get(`${POOLS}/row/row-inside/@parent_name`)).toBe('row');

    // One with pools inside stays.
    await take(page, 'row', 'Remove');
    await page.getByText('a pool inside. Remove or move').waitFor();
    expect(await inDialog(page, 'Remove').isDisabled()).toBe(true);
    await inDialog(page, 'Cancel').click();
    for (const name of ['row-inside', 'row']) {
      await take(page, name, 'Remove');
      await inDialog(page, 'Remove').click();
      await page.getByRole('link', { name, exact: true }).waitFor({ state: 'detached' });
    }
    expect((await command<{ value: boolean }>('exists', { path: `${POOLS}/row` })).value).toBe(false);

    await page.getByLabel('Filter pools by name').fill('menus');
    await take(page, 'menus', 'Operations');
    await page.waitForURL(/\/operations\?.*pool=menus/);
  });

  test('of an operation, in the tree of pools', async () => {
    const id = await startOperation('menus', 'in the tree');
    const page = await visit('/scheduling?open=menus');
    await page.getByRole('link', { name: 'in the tree' }).waitFor();
    await take(page, 'in the tree', 'Suspend');
    await inDialog(page, 'Suspend').click();
    await eventually(
      () => command<{ suspended: boolean }>('get_operation', { operation_id: id, attributes: ['suspended'] }),
      answer => answer.suspended,
    );
    await command('abort_operation', { operation_id: id });
  });

  test('of an operation, in the list of operations', async () => {
    const id = await startOperation('menus', 'in the list');
    await eventually(
      () => jobsOf(id),
      jobs => jobs.some(job => job.state === 'running'),
    );
    const page = await visit('/operations?filter=in+the+list&state=running');
    await take(page, 'in the list', 'Complete');
    await page.getByText('1 running job will be aborted').waitFor();
    await inDialog(page, 'Complete').click();
    await eventually(
      () => stateOf(id),
      state => state === 'completed',
    );
    await page.getByText('No operation is as you look for').waitFor();
  });
});

describe('the fields that lead somewhere', () => {
  test('an id, an alias, and any other text in the field on top', async () => {
    const id = await startOperation('lists', 'a needle of lists', {}, { alias: '*found-by-name' });
    const page = await visit('/nodes');
    const field = page.getByLabel('Find an operation');
    for (const text of [id, '*found-by-name']) {
      await field.fill(text);
      await field.press('Enter');
      await page.getByRole('heading', { name: 'a needle of lists' }).waitFor();
      await page.goto(new URL('/nodes', page.url()).href);
    }
    await field.fill('a needle of');
    await field.press('Enter');
    await page.waitForURL(/\/operations\?filter=a/);
    await rowsAre(page, 'Operations', 1, 'a needle of lists');
    await field.fill('*nobody');
    await field.press('Enter');
    await page
      .getByRole('alert')
      .getByText(/nobody/)
      .first()
      .waitFor();
    expect(await findings(page)).toEqual([]);
    await command('abort_operation', { operation_id: id });
  });

  test('the choice beside the name of a pool', async () => {
    const page = await visit('/scheduling/physical/menus');
    await page.getByRole('combobox', { name: 'Go to another pool' }).click();
    await page.keyboard.type('list');
    await page.getByRole('option', { name: 'lists' }).click();
    await page.getByRole('heading', { name: 'lists' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/scheduling/physical/lists');
  });
});
