/**
 * Pictures of every page of a running cluster, to be looked at with a critical eye:
 * `node scripts/shots.mjs http://127.0.0.1:8000 /tmp/shots [light|dark|phone] [name]`.
 */

import { mkdir } from 'node:fs/promises';
import { chromium } from 'playwright-core';

const [url, folder, kind = 'light', only] = process.argv.slice(2);
if (url === undefined || folder === undefined) throw new Error('usage: shots.mjs URL FOLDER [KIND] [NAME]');

const KINDS = {
  light: { viewport: { width: 1440, height: 900 }, colorScheme: 'light' },
  dark: { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, colorScheme: 'light' },
};

async function command(name, parameters) {
  const response = await fetch(`${url}/api/v4/${name}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(parameters),
  });
  return response.json();
}

/** The newest operation of a state, and its newest job. */
async function newest(state) {
  const { operations = [] } = await command('list_operations', { state, attributes: ['id'], limit: 1 });
  const id = operations[0]?.id;
  if (id === undefined) return undefined;
  const { jobs = [] } = await command('list_jobs', { operation_id: id, limit: 1 });
  return { id, job: jobs[0]?.id, node: jobs[0]?.address };
}

const pool = process.env.POOL ?? 'nightly';
const running = (await newest('running')) ?? {};
const failed = await newest('failed');
const chosen = process.env.OPERATION === undefined ? running : { ...running, id: process.env.OPERATION };

const PAGES = {
  scheduling: '/scheduling',
  'scheduling-cpu': '/scheduling?set=cpu&config=open',
  'scheduling-integral': '/scheduling?set=integral',
  'scheduling-empty': '/scheduling?filter=zzz',
  pool: `/scheduling/physical/${pool}`,
  'pool-why': `/scheduling/physical/${pool}?tab=why`,
  'pool-inside': `/scheduling/physical/${pool}?tab=inside`,
  'pool-missing': '/scheduling/physical/nobody',
  operations: '/operations',
  operation: `/operations/${chosen.id}`,
  'operation-why': `/operations/${chosen.id}?tab=why`,
  'operation-jobs': `/operations/${chosen.id}?tab=jobs`,
  'operation-timeline': `/operations/${chosen.id}?tab=timeline`,
  'operation-statistics': `/operations/${chosen.id}?tab=statistics`,
  'operation-specification': `/operations/${chosen.id}?tab=specification&spec=resulting`,
  'operation-preemptions': `/operations/${chosen.id}?tab=preemptions`,
  ...(failed === undefined ? {} : { 'operation-failed': `/operations/${failed.id}` }),
  job: `/operations/${running.id}/jobs/${running.job}`,
  'job-output': `/operations/${running.id}/jobs/${running.job}?tab=output`,
  nodes: '/nodes',
  'nodes-table': '/nodes?view=table',
  node: `/nodes/${running.node}`,
  preemptions: '/preemptions',
  tree: '/tree?path=//sys',
  system: '/system',
  submit: '/submit',
};

await mkdir(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
const context = await browser.newContext(KINDS[kind]);
const page = await context.newPage();
for (const [name, path] of Object.entries(PAGES)) {
  if (only !== undefined && !name.startsWith(only)) continue;
  await page.goto((process.env.PAGE_URL ?? url) + path);
  await page.waitForTimeout(1_800);
  await page.screenshot({ path: `${folder}/${name}-${kind}.png` });
}
await browser.close();
