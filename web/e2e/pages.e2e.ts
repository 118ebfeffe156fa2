/** Every page with real data: it shows what there is, says nothing in the console, and passes axe. */

import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  command,
  eventually,
  findings,
  makePool,
  settled,
  startOperation,
  stateOf,
  still,
  useBrowser,
  visit,
} from './harness';

useBrowser();

let running = '';
let failed = '';
let job = '';
let node = '';

beforeAll(async () => {
  await makePool('production', { weight: 4, strong_guarantee_resources: { cpu: 6 } });
  await makePool('search', { parent_name: 'production' });
  await makePool('nightly', {
    integral_guarantees: {
      guarantee_type: 'burst',
      resource_flow: { cpu: 1 },
      burst_guarantee_resources: { cpu: 4 },
    },
  });
  await makePool(
    'a-pool-with-a-name-that-is-longer-than-anybody-would-have-thought-when-the-table-was-drawn',
  );
  running = await startOperation('search', 'rank pages', { job_count: 4 }, { annotations: { why: 'e2e' } });
  failed = await startOperation(
    'nightly',
    'breaks',
    { command: 'echo it broke >&2; exit 3' },
    { max_failed_job_count: 1, max_faild: 1 },
  );
  await eventually(
    () => stateOf(failed),
    state => state === 'failed',
  );
  type Jobs = { jobs: { id: string; state: string; address: string }[] };
  const jobs = () => command<Jobs>('list_jobs', { operation_id: running });
  const { jobs: all } = await eventually(jobs, answer => answer.jobs.some(one => one.state === 'running'));
  // The other jobs may still wait for a node.
  const first = all.find(one => one.state === 'running');
  job = first?.id ?? '';
  node = first?.address ?? '';
});

interface Case {
  name: string;
  path: () => string;
  /** What must be there to be read. */
  texts: string[];
}

const CASES: Case[] = [
  {
    name: 'scheduling',
    path: () => '/scheduling',
    texts: ['production', 'search', 'nightly', '2 nodes', 'starving|below|burst|Guarantee'],
  },
  {
    name: 'scheduling by cpu',
    path: () => '/scheduling?set=cpu&config=open',
    texts: ['Strong guarantees', 'Delta', 'Estimated'],
  },
  {
    name: 'integral guarantees',
    path: () => '/scheduling?set=integral',
    texts: ['burst', 'Volume', 'Burst lasts'],
  },
  { name: 'counts', path: () => '/scheduling?set=operations', texts: ['of at most', 'Lightweight'] },
  {
    name: 'a pool',
    path: () => '/scheduling/physical/nightly',
    texts: ['Integral guarantee', 'Share over time', 'Accumulated volume', 'Dominant resource'],
  },
  {
    name: 'why a pool has its share',
    path: () => '/scheduling/physical/search?tab=why',
    texts: ['is entitled to', 'Shares of CPU in production'],
  },
  { name: 'inside a pool', path: () => '/scheduling/physical/search?tab=inside', texts: ['rank pages'] },
  {
    name: 'attributes of a pool',
    path: () => '/scheduling/physical/production?tab=attributes',
    texts: ['strong_guarantee_resources', 'parent_name'],
  },
  { name: 'no such pool', path: () => '/scheduling/physical/nobody', texts: ['There is no pool nobody'] },
  { name: 'operations', path: () => '/operations', texts: ['rank pages', 'breaks', 'running', 'failed'] },
  { name: 'operations that are looked for', path: () => '/operations?filter=rank', texts: ['rank pages'] },
  {
    name: 'no such operations',
    path: () => '/operations?filter=zzz',
    texts: ['No operation is as you look for'],
  },
  {
    name: 'an operation',
    path: () => `/operations/${running}`,
    texts: ['rank pages', 'Tasks', 'In tree physical', 'Fair share', 'e2e'],
  },
  {
    name: 'a failed operation',
    path: () => `/operations/${failed}`,
    texts: ['Failed jobs limit exceeded', 'Newest failed jobs', 'output'],
  },
  {
    name: 'the resulting specification',
    path: () => `/operations/${running}?tab=specification&spec=resulting`,
    texts: ['job_cpu_monitor', 'smoothing_factor', 'user_job_memory_digest_default_value'],
  },
  {
    name: 'what nobody understood',
    path: () => `/operations/${failed}?tab=specification&spec=unrecognized`,
    texts: ['max_faild', 'no effect'],
  },
  { name: 'jobs', path: () => `/operations/${running}?tab=jobs`, texts: ['running', 'work'] },
  {
    name: 'the timeline of jobs',
    path: () => `/operations/${running}?tab=timeline`,
    texts: ['Unit of work', 'completed'],
  },
  {
    name: 'statistics',
    path: () => `/operations/${running}?tab=statistics&name=memory`,
    texts: ['user_job', 'max_memory'],
  },
  {
    name: 'why an operation runs as it does',
    path: () => `/operations/${running}?tab=why`,
    texts: ['Shares in tree physical'],
  },
  {
    name: 'preemptions of an operation',
    path: () => `/operations/${running}?tab=preemptions`,
    texts: ['Suffered', 'Caused'],
  },
  {
    name: 'attributes of an operation',
    path: () => `/operations/${running}?tab=attributes`,
    texts: ['runtime_parameters'],
  },
  {
    name: 'a job',
    path: () => `/operations/${running}/jobs/${job}`,
    texts: ['Unit of work', 'Duration', 'created'],
  },
  {
    name: 'the statistics of a job',
    path: () => `/operations/${running}/jobs/${job}?tab=statistics`,
    texts: ['job_proxy'],
  },
  {
    name: 'what a job uses',
    path: () => `/operations/${running}/jobs/${job}?tab=usage`,
    texts: ['Guaranteed now', 'Reserved', 'What the node makes of it', 'No job has ended yet'],
  },
  { name: 'nodes', path: () => '/nodes', texts: ['2 of 2 nodes online', 'search'] },
  {
    name: 'nodes by preemption',
    path: () => '/nodes?color=group',
    texts: ['protected', 'preemptible aggressively'],
  },
  { name: 'nodes in a table', path: () => '/nodes?view=table', texts: ['online', 'Tags'] },
  { name: 'a node', path: () => `/nodes/${node}`, texts: ['rank pages', 'Last heartbeat', 'Preemption'] },
  { name: 'preemptions', path: () => '/preemptions', texts: ['are kept'] },
  { name: 'system', path: () => '/system', texts: ['Version', 'connected', 'Longest silent'] },
  { name: 'submit', path: () => '/submit', texts: ['millpond run', 'Start'] },
  { name: 'the tree', path: () => '/tree?path=//sys', texts: ['cluster_nodes', 'scheduler_pool_tree_map'] },
  { name: 'the root of the tree', path: () => '/tree', texts: ['home', 'map_node'] },
  {
    name: 'a value in the tree',
    path: () => '/tree?path=//sys/pool_trees/physical/production&tab=attributes',
    texts: ['strong_guarantee_resources'],
  },
  {
    name: 'access to the tree',
    path: () => '/tree?path=//tmp&tab=access',
    texts: ['Its own list', 'From above', 'users', 'May they\\?'],
  },
  { name: 'people', path: () => '/people', texts: ['guest', 'superusers|users', 'everybody is root'] },
  { name: 'groups', path: () => '/people?tab=groups', texts: ['superusers', 'everybody but guest'] },
  { name: 'nothing', path: () => '/scheduling/a/b/c', texts: ['no such page'] },
];

async function expectTexts(page: Page, texts: string[]): Promise<void> {
  for (const text of texts) await page.getByText(new RegExp(text)).first().waitFor();
}

describe.each(CASES)('$name', ({ path, texts }) => {
  test('is there and accessible, light', async () => {
    // A pool or path that is not there is asked for on purpose.
    const page = await visit(path(), { colorScheme: 'light' });
    await expectTexts(page, texts);
    expect(await findings(page)).toEqual([]);
  });
});

test.each(['/scheduling', '/operations', '/nodes', '/scheduling/physical/nightly', '/system'])(
  '%s is accessible in the dark',
  async path => {
    const page = await visit(path, { colorScheme: 'dark' });
    await settled(page);
    expect(await findings(page)).toEqual([]);
  },
);

test.each([
  '/scheduling',
  '/operations',
  '/nodes',
  '/submit',
  '/scheduling/physical/nightly?tab=why',
  '/preemptions',
  '/people',
  '/tree?path=//tmp&tab=access',
])('%s fits on a phone', async path => {
  const page = await visit(path, { viewport: { width: 390, height: 844 } });
  await settled(page);
  await eventually(
    () => page.evaluate(() => document.documentElement.scrollWidth),
    width => width <= 390,
  );
});

test.each(['Edit', 'Move quota', 'Remove'])('the dialog behind %s fits on a phone', async name => {
  const width = 390;
  const page = await visit('/scheduling/physical/production', { viewport: { width, height: 844 } });
  await page.getByRole('button', { name, exact: true }).click();
  const dialog = page.locator('.g-dialog');
  await dialog.getByRole('button', { name: 'Cancel' }).waitFor();
  await still(page);
  const box = await dialog.boundingBox();
  expect(box?.x).toBeGreaterThanOrEqual(0);
  expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
});

test('dialogs are accessible', async () => {
  const page = await visit('/scheduling/physical/production');
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.locator('#pool-weight').waitFor();
  // The dialog fades in: only then its colours are what they are.
  await still(page);
  expect(await findings(page)).toEqual([]);
});
