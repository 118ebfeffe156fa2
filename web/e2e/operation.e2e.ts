/** An operation's page: what it was asked to do, what it complains about, how its jobs ended. */

import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  command,
  eventually,
  findings,
  inDialog,
  makePool,
  rowsAre,
  startOperation,
  stateOf,
  useBrowser,
  visit,
  writeRows,
} from './harness';

useBrowser();

interface Job {
  id: string;
  state: string;
  task_name: string;
}

const jobsOf = async (operation: string): Promise<Job[]> =>
  (await command<{ jobs: Job[] }>('list_jobs', { operation_id: operation })).jobs;

const runningJobs = (operation: string, count: number): Promise<Job[]> =>
  eventually(
    async () => (await jobsOf(operation)).filter(job => job.state === 'running'),
    jobs => jobs.length === count,
  );

beforeAll(async () => {
  await makePool('asked');
});

describe('what it was asked to do', () => {
  const FILE = '//tmp/e2e-words.txt';
  let id = '';

  beforeAll(async () => {
    await command('create', { type: 'file', path: FILE, ignore_existing: true });
    id = await startOperation(
      'asked',
      'has files',
      {
        command: 'wc words; sleep 3600',
        file_paths: [{ $value: FILE, $attributes: { file_name: 'words' } }],
        environment: { LANGUAGE: 'none' },
      },
      { description: 'Counts for the sake of counting' },
    );
  });

  test('description, command, files and environment of each task, with a way to all of it', async () => {
    const page = await visit(`/operations/${id}`);
    await page.getByText('Counts for the sake of counting').waitFor();
    const script = page.getByRole('region', { name: 'What work runs' });
    await script.getByText('wc words; sleep 3600').waitFor();
    await script.getByText('LANGUAGE=none').waitFor();
    await script.getByText('as words').waitFor();
    expect(await findings(page)).toEqual([]);
    await script.getByRole('link', { name: FILE }).click();
    await page.waitForURL(/\/tree\?path=/);
    await page.goBack();
    await page.getByRole('link', { name: 'all of it' }).click();
    await page.getByRole('button', { name: 'Resulting specification' }).waitFor();
  });
});

test('events: each state with its time and how long it lasted', async () => {
  const id = await startOperation('asked', 'is over soon', { command: 'true' });
  await eventually(
    () => stateOf(id),
    state => state === 'completed',
  );
  const page = await visit(`/operations/${id}`);
  const events = page.getByRole('table', { name: 'Events' });
  await events.getByRole('row', { name: /^running .* (s|ms|min)$/ }).waitFor();
  await events.getByRole('row', { name: /^completed/ }).waitFor();
  await page.locator('.page__subtitle').getByText('ended').waitFor();
});

test('alerts with their names and times; a suspension with its reason', async () => {
  const id = await startOperation('asked', 'is held');
  await command('suspend_operation', { operation_id: id, reason: 'because of the moon' });
  const page = await visit(`/operations/${id}`);
  const alerts = page.locator('.alerts');
  await alerts.getByText(/because of the moon/).waitFor();
  await alerts.getByText(/^operation suspended, since .*\d+:\d\d:\d\d/).waitFor();
  expect(await findings(page)).toEqual([]);
  // And in the tree of pools, as a mark.
  const tree = await visit('/scheduling?open=asked');
  await tree
    .getByRole('row', { name: /is held/ })
    .getByText('suspended')
    .waitFor();
  await command('resume_operation', { operation_id: id });
  await alerts.waitFor({ state: 'detached' });
  // It came and went, and that stays when the operation is in the archive.
  const over = page.locator('section', { hasText: 'Alerts that are over' });
  const period = /^operation suspended, from .*\d+:\d\d:\d\d to .*\d+:\d\d:\d\d/;
  await over.getByText(period).waitFor();
  await over.getByText(/because of the moon/).waitFor();
  expect(await findings(page)).toEqual([]);
  await command('complete_operation', { operation_id: id });
  await eventually(
    () => stateOf(id),
    state => state === 'completed',
  );
  const ended = await visit(`/operations/${id}`);
  await ended.locator('section', { hasText: 'Alerts that are over' }).getByText(period).waitFor();
  await ended
    .locator('.alerts')
    .getByText(/^operation completed by user request, since/)
    .waitFor();
});

test('why jobs ended early, by kind and reason; a count leads to these jobs', async () => {
  const id = await startOperation('asked', 'loses jobs', { job_count: 2, cpu_limit: 0.5 });
  const [first] = await runningJobs(id, 2);
  await command('abort_job', { job_id: first?.id });
  await eventually(
    () => jobsOf(id),
    jobs => jobs.some(job => job.id === first?.id && job.state === 'aborted'),
  );
  const page = await visit(`/operations/${id}`);
  const tasks = page.locator('section', { hasText: 'Tasks' }).first();
  await tasks.getByText('vanilla').first().waitFor();
  await tasks.getByText('aborted 1').click();
  await tasks.getByRole('row', { name: /aborted user request 1/ }).waitFor();
  expect(await findings(page)).toEqual([]);
  await tasks.getByRole('link', { name: '1', exact: true }).click();
  await page.waitForURL(/tab=jobs/);
  const asked = new URL(page.url()).searchParams;
  expect([asked.get('state'), asked.get('task')]).toEqual(['aborted', 'work']);
  const rows = page.getByRole('table', { name: 'Jobs' }).locator('.table__body [role=row]');
  await eventually(
    () => rows.allInnerTexts(),
    texts => texts.length === 1 && texts[0]?.includes('user request') === true,
  );
});

test('columns of jobs: kind and progress', async () => {
  const id = await startOperation('asked', 'is done', { command: 'true' });
  await eventually(
    () => stateOf(id),
    state => state === 'completed',
  );
  const page = await visit(`/operations/${id}?tab=jobs`);
  const row = page.getByRole('table', { name: 'Jobs' }).locator('.table__body [role=row]').first();
  await eventually(
    () => row.innerText(),
    text => /vanilla/.test(text) && /100 %/.test(text),
  );
});

test('a job is interrupted, another is abandoned; its attributes, and the command for a shell', async () => {
  const polite = await startOperation('asked', 'stops when asked', {
    command: 'trap "exit 0" USR1; echo listens >&2; while :; do sleep 0.2; done',
    interruption_signal: 'SIGUSR1',
    cpu_limit: 0.5,
  });
  const [listener] = await runningJobs(polite, 1);
  const page = await visit(`/operations/${polite}/jobs/${listener?.id}?tab=output`);
  await page.getByText('listens').waitFor();
  await page.getByRole('tab', { name: 'Details' }).click();
  await page.getByRole('button', { name: 'Interrupt', exact: true }).click();
  await inDialog(page, 'Interrupt').click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.getByText('user request').first().waitFor();
  await eventually(
    async () => (await jobsOf(polite)).find(job => job.id === listener?.id)?.state,
    state => state === 'completed',
  );

  const id = await startOperation('asked', 'is deaf', { cpu_limit: 0.5 });
  const [deaf] = await runningJobs(id, 1);
  const other = await visit(`/operations/${id}/jobs/${deaf?.id}?tab=attributes`);
  await other.getByRole('region', { name: 'Attributes of the job' }).getByText('job_cookie').waitFor();
  await other.getByRole('button', { name: 'Shell', exact: true }).click();
  await other.getByText(new RegExp(`run-job-shell ${deaf?.id}`)).waitFor();
  await inDialog(other, 'Done').click();
  await other.getByRole('button', { name: 'Interrupt', exact: true }).click();
  await inDialog(other, 'Interrupt').click();
  await other.getByText(/cannot be interrupted: its task has no "interruption_signal"/).waitFor();
  await inDialog(other, 'Cancel').click();
  await other.getByRole('button', { name: 'Abandon', exact: true }).click();
  await inDialog(other, 'Abandon').click();
  await eventually(
    async () => (await jobsOf(id)).find(job => job.id === deaf?.id)?.state,
    state => state === 'completed',
  );
  await other.getByText('completed').first().waitFor();
});

test('a slow job and its copy know of each other', async () => {
  const id = await startOperation(
    'asked',
    'runs twice',
    { enable_speculative_jobs: true, cpu_limit: 0.1 },
    { job_speculation_timeout: 1_000 },
  );
  const ids = (await runningJobs(id, 2)).map(job => job.id);
  const { job_competition_id: slow } = await command<{ job_competition_id: string }>('get_job', {
    operation_id: id,
    job_id: ids[0],
  });
  const copy = ids.find(job => job !== slow);
  const page = await visit(`/operations/${id}/jobs/${slow}`);
  const both = page.getByRole('table', { name: 'A slow job and its copy' });
  await both.getByRole('row', { name: /the slow one, this job/ }).waitFor();
  await both
    .getByRole('row', { name: /its copy/ })
    .getByRole('link')
    .click();
  await page.waitForURL(new RegExp(`/jobs/${copy}`));
  await both.getByRole('row', { name: /its copy, this job/ }).waitFor();
  expect(await findings(page)).toEqual([]);
  const jobs = await visit(`/operations/${id}?tab=jobs&with=competitors`);
  await rowsAre(jobs, 'Jobs', 2, 'running');
});

describe('rows of jobs', () => {
  const TABLE = '//tmp/e2e-rows';
  let map = '';

  /** The one job that has ended so. */
  const oneJob = async (operation: string, state: string): Promise<string> => {
    const jobs = await eventually(
      async () => (await jobsOf(operation)).filter(job => job.state === state),
      all => all.length === 1,
    );
    return jobs[0]?.id ?? '';
  };

  beforeAll(async () => {
    await writeRows(TABLE, [{ word: 'pike' }, { word: 'perch' }]);
    const spec = {
      pool: 'asked',
      input_table_paths: [TABLE],
      output_table_paths: [],
      max_failed_job_count: 1,
      mapper: { command: 'cat > /dev/null; exit 1', format: 'json', cpu_limit: 0.1, memory_limit: 64 << 20 },
    };
    const started = await command<{ operation_id: string }>('start_operation', {
      operation_type: 'map',
      spec,
    });
    map = started.operation_id;
    await eventually(
      () => stateOf(map),
      state => state === 'failed',
    );
  });

  test('what a job of a map was given, and what it was reading when it failed', async () => {
    const job = await oneJob(map, 'failed');
    const page = await visit(`/operations/${map}?tab=jobs`);
    const row = page.getByRole('table', { name: 'Jobs' }).locator('.table__body [role=row]').first();
    await row.getByRole('link', { name: 'rows', exact: true }).waitFor();
    await row.getByRole('link', { name: /at the failure/ }).click();
    await page.waitForURL(new RegExp(`/jobs/${job}\\?tab=fail_context`));
    await page.locator('pre', { hasText: 'perch' }).waitFor();
    const file = page.getByRole('link', { name: /Download what it was reading/ });
    const [download] = await Promise.all([page.waitForEvent('download'), file.click()]);
    expect(download.suggestedFilename()).toBe(`${job}.fail_context`);
    expect(await readFile(await download.path(), 'utf-8')).toMatch(/pike[^]*perch/);
    await page.getByRole('tab', { name: 'Input', exact: true }).click();
    await page.getByRole('link', { name: 'Download all of its input' }).waitFor();
    await page.locator('pre', { hasText: 'pike' }).waitFor();
    expect(await findings(page)).toEqual([]);
  });

  test('a job without tables offers neither', async () => {
    const id = await startOperation(
      'asked',
      'reads nothing',
      { command: 'exit 1' },
      { max_failed_job_count: 1 },
    );
    await eventually(
      () => stateOf(id),
      state => state === 'failed',
    );
    const jobs = await visit(`/operations/${id}?tab=jobs`);
    await rowsAre(jobs, 'Jobs', 1, 'failed');
    const table = jobs.getByRole('table', { name: 'Jobs' });
    await table.getByRole('columnheader', { name: /Input/ }).waitFor();
    expect(await table.getByRole('link', { name: /rows|at the failure/ }).count()).toBe(0);
    const page = await visit(`/operations/${id}/jobs/${await oneJob(id, 'failed')}`);
    await page.getByRole('tab', { name: 'Output' }).waitFor();
    expect(await page.getByRole('tab', { name: /Input/ }).count()).toBe(0);
  });
});

test('an error is shown whole: what is inside, its attributes, and a copy', async () => {
  const id = await startOperation('asked', 'fails', { command: 'exit 7' }, { max_failed_job_count: 1 });
  await eventually(
    () => stateOf(id),
    state => state === 'failed',
  );
  const page = await visit(`/operations/${id}`);
  const error = page.getByRole('alert').first();
  await error.getByText('Failed jobs limit exceeded').waitFor();
  await error.getByText(/code 215/).waitFor();
  await error
    .getByText(/exit code 7|code 7/)
    .first()
    .waitFor();
  await error.getByRole('button', { name: 'details' }).first().click();
  await error.getByText('max_failed_job_count').waitFor();
  await error.getByRole('button', { name: /Copy as JSON/ }).waitFor();
});

test('a favourite is one click away from every page, until it is none any more', async () => {
  const id = await startOperation('asked', 'looked at daily');
  const page = await visit(`/operations/${id}`);
  await page.getByRole('button', { name: 'Make it a favourite' }).click();
  await page.goto(new URL('/scheduling/physical/asked', page.url()).href);
  await page.getByRole('button', { name: 'Make it a favourite' }).click();
  await page.goto(new URL('/nodes', page.url()).href);
  await page.getByRole('button', { name: 'Favourites' }).click();
  await page.getByRole('menuitem', { name: /asked pool of physical/ }).waitFor();
  await page.getByRole('menuitem', { name: /looked at daily/ }).click();
  await page.getByRole('heading', { name: 'looked at daily' }).waitFor();
  await page.getByRole('button', { name: 'No favourite any more' }).click();
  await page.getByRole('button', { name: 'Favourites' }).click();
  await page.getByRole('menuitem', { name: /asked/ }).waitFor();
  expect(await page.getByRole('menuitem').count()).toBe(1);
});
