/** Who lost what to whom: in the log, at both operations, at the job. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  command,
  eventually,
  findings,
  makePool,
  rowsOf,
  startOperation,
  stateOf,
  useBrowser,
  visit,
} from './harness';
import { shortId } from '../src/model/format';

useBrowser();

const CONFIG = '//sys/pool_trees/physical/@config';
// The usual ones are half a minute.
const QUICK = { fair_share_starvation_timeout: 500, preemptive_scheduling_backoff: 100 };

interface Job {
  id: string;
  state: string;
  abort_reason?: string;
}

const jobsOf = async (id: string): Promise<Job[]> =>
  (await command<{ jobs: Job[] }>('list_jobs', { operation_id: id, limit: 1_000 })).jobs;

let loser = '';
let winner = '';
let lost: Job[] = [];

beforeAll(async () => {
  const requests = Object.entries(QUICK).map(([name, input]) => ({
    command: 'set',
    parameters: { path: `${CONFIG}/${name}` },
    input,
  }));
  await command('execute_batch', { requests });
  await makePool('generous');
  await makePool('promised', { strong_guarantee_resources: { cpu: 8 } });
  // Both nodes are full.
  loser = await startOperation('generous', 'takes all there is', { job_count: 16 });
  await eventually(
    () => jobsOf(loser),
    jobs => jobs.filter(({ state }) => state === 'running').length === 16,
  );
  winner = await startOperation('promised', 'wants what was promised', { job_count: 2 });
  await eventually(
    () => jobsOf(winner),
    jobs => jobs.filter(({ state }) => state === 'running').length === 2,
  );
  // The ends of these jobs and the starts above are told by different nodes, in any order.
  lost = await eventually(
    async () => (await jobsOf(loser)).filter(job => job.abort_reason === 'preemption'),
    jobs => jobs.length >= 2,
  );
});
afterAll(async () => {
  const requests = Object.keys(QUICK).map(name => ({
    command: 'remove',
    parameters: { path: `${CONFIG}/${name}` },
  }));
  await command('execute_batch', { requests });
});

test('the log says who lost what to whom, by name, and leads there', async () => {
  const page = await visit(`/preemptions?filter=${winner}`);
  const rows = rowsOf(page, 'Preemptions');
  await eventually(
    () => rows.allInnerTexts(),
    texts => texts.length >= 2 && texts.every(text => text.includes('generous') && /1 core/.test(text)),
  );
  expect(await findings(page)).toEqual([]);
  await page
    .getByRole('table', { name: 'Preemptions' })
    .getByRole('link', { name: 'generous' })
    .first()
    .click();
  await page.getByRole('heading', { name: 'generous' }).waitFor();
});

test('at the operation that lost, and at the one that won', async () => {
  const suffered = await visit(`/operations/${loser}?tab=preemptions`);
  await suffered.getByText('generous').first().waitFor();
  await suffered
    .getByRole('link', { name: shortId(winner) })
    .first()
    .waitFor();
  const caused = await visit(`/operations/${winner}?tab=preemptions`);
  await caused
    .getByRole('link', { name: shortId(loser) })
    .first()
    .waitFor();
  expect(await stateOf(loser)).toBe('running');
});

test('at the job: to whom it gave way', async () => {
  const page = await visit(`/operations/${loser}/jobs/${lost[0]?.id}`);
  await page
    .getByText(/preemption/)
    .first()
    .waitFor();
  await page
    .getByRole('link', { name: shortId(winner) })
    .first()
    .waitFor();
  expect(await findings(page)).toEqual([]);
});
