/**
 * Pages left open: heap, document nodes and listeners of five pages, minute by minute in real time, while pools
 * change their shares and operations start and end all the time. A page that keeps something of each update
 * would grow line by line.
 */

import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { batch, command, keep, operation, pool, set } from './cluster.mjs';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    // Milliseconds from one change to the next.
    every: { type: 'string', default: '1000' },
  },
});
const MINUTES = Number(options.minutes);
const EVERY = Number(options.every);
const PAGE = process.env.PAGE_URL ?? process.env.MILLPOND_URL;
const POOLS = 200;

const pools = Array.from({ length: POOLS }, (_, i) => `pool-${i}`);
await batch(pools.map(name => pool(name, '<Root>')));
const steady = operation(pools[0], 'stays', { command: 'sleep 36000', job_count: 20, cpu_limit: 0.5 });
const [{ operation_id: watched }] = await batch([steady]);

const changes = [
  // All fair shares.
  keep(i => set(`//sys/pool_trees/physical/${pools[i % 10]}/@weight`, 1 + ((i * 7) % 13)), EVERY),
  keep(
    i =>
      batch([operation(pools[i % POOLS], `run ${i}`, { command: 'sleep 3', job_count: 2, cpu_limit: 0.5 })]),
    EVERY,
  ),
];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  // Numbers of the heap are exact then, and not in steps.
  args: ['--no-sandbox', '--enable-precise-memory-info'],
});
const job = (await command('list_jobs', { operation_id: watched, limit: 1 })).jobs[0];
const PATHS = {
  scheduling: '/scheduling',
  pool: `/scheduling/physical/${pools[0]}`,
  operations: '/operations',
  operation: `/operations/${watched}?tab=jobs`,
  nodes: '/nodes',
};
if (job !== undefined) PATHS.job = `/operations/${watched}/jobs/${job.id}?tab=usage`;

const opened = [];
for (const [name, path] of Object.entries(PATHS)) {
  const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
  let asked = 0;
  page.on('request', request => (asked += request.url().includes('/api/') ? 1 : 0));
  await page.goto(PAGE + path);
  await page.locator('h1').first().waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  opened.push({ name, session, asked: () => asked });
}

async function look({ session, asked }) {
  // Twice: what is freed by the first may hold what the second frees.
  for (let i = 0; i < 2; i += 1) await session.send('HeapProfiler.collectGarbage');
  const { metrics } = await session.send('Performance.getMetrics');
  const of = name => metrics.find(metric => metric.name === name)?.value ?? 0;
  return {
    heap: of('JSHeapUsedSize') / 1e6,
    nodes: of('Nodes'),
    listeners: of('JSEventListeners'),
    asked: asked(),
  };
}

console.log('heap in MB, document nodes, listeners, questions so far');
console.log(`minute  ${opened.map(({ name }) => name.padEnd(26)).join('')}`);
const started = Date.now();
for (let minute = 0; minute <= MINUTES; minute += 1) {
  const wait = started + minute * 60_000 - Date.now();
  if (wait > 0) await new Promise(resolve => setTimeout(resolve, wait));
  const cells = [];
  for (const one of opened) {
    const { heap, nodes, listeners, asked } = await look(one);
    cells.push(`${heap.toFixed(1)} ${nodes} ${listeners} ${asked}`.padEnd(26));
  }
  console.log(`${String(minute).padStart(6)}  ${cells.join('')}`);
}
await browser.close();
const done = await Promise.all(changes.map(stop => stop()));
console.log(`${done[0]} changes of weights, ${done[1]} operations meanwhile`);
