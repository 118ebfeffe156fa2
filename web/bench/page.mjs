/**
 * What the page costs the browser, by the browser's own profiler: first paint, tasks of the main thread while
 * one scrolls and while the page updates itself, and the heap after an hour of updates. These are figures, not
 * tests: they say as much about the machine as about the page.
 */

import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';

const { values: options } = parseArgs({
  options: {
    operations: { type: 'string', default: '100000' },
    minutes: { type: 'string', default: '60' },
    // The cluster at MILLPOND_URL has been filled by an earlier run.
    filled: { type: 'boolean', default: false },
  },
});
const OPERATIONS = Number(options.operations);
const MINUTES = Number(options.minutes);
const API = process.env.MILLPOND_URL;
const PAGE = process.env.PAGE_URL ?? API;

const GROUPS = 20;
const IN_EACH = 100;
/** Milliseconds: longer tasks make a page stutter. */
const LONG = 50;

async function batch(requests) {
  const response = await fetch(`${API}/api/v4/execute_batch`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ requests }),
  });
  const { results } = await response.json();
  const failed = results.find(result => result.error !== undefined);
  if (failed !== undefined) throw new Error(JSON.stringify(failed.error));
}

const pool = (name, parent) => ({
  command: 'create',
  parameters: {
    type: 'scheduler_pool',
    attributes: { name, parent_name: parent, pool_tree: 'physical', max_operation_count: OPERATIONS + 1_000 },
  },
});

const operation = (poolName, number) => ({
  command: 'start_operation',
  parameters: {
    operation_type: 'vanilla',
    spec: {
      pool: poolName,
      title: `operation ${number} of a title as long as they usually are`,
      tasks: { work: { command: 'sleep 3600', job_count: 1 + (number % 50), memory_limit: 64 << 20 } },
    },
  },
});

async function fill() {
  // The usual limits are far below.
  const most = OPERATIONS + 1_000;
  for (const path of ['//sys/scheduler/config', '//sys/pool_trees/physical/@config']) {
    await batch([{ command: 'set', parameters: { path: `${path}/max_operation_count` }, input: most }]);
  }
  const groups = Array.from({ length: GROUPS }, (_, i) => `group-${i}`);
  await batch(groups.map(name => pool(name, '<Root>')));
  const pools = groups.flatMap(group => Array.from({ length: IN_EACH }, (_, i) => [`${group}-${i}`, group]));
  await batch(pools.map(([name, parent]) => pool(name, parent)));
  const STEP = 500;
  for (let at = 0; at < OPERATIONS; at += STEP) {
    const some = Array.from({ length: Math.min(STEP, OPERATIONS - at) }, (_, i) => at + i);
    await batch(some.map(i => operation(pools[i % pools.length][0], i)));
  }
}

/** Tasks of the main thread while something is done: their number, the long ones, the longest. */
async function tasks(page, during) {
  const browser = page.context().browser();
  await browser.startTracing(page, { categories: ['toplevel', 'disabled-by-default-devtools.timeline'] });
  await during();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const main = new Set(
    traceEvents
      .filter(event => event.name === 'thread_name' && event.args?.name === 'CrRendererMain')
      .map(event => `${event.pid} ${event.tid}`),
  );
  // Time of the processor: that of the clock says more about what else runs on the machine.
  const costs = traceEvents
    .filter(event => event.ph === 'X' && event.tdur !== undefined && main.has(`${event.pid} ${event.tid}`))
    .map(event => event.tdur / 1_000);
  return {
    tasks: costs.length,
    long: costs.filter(ms => ms > LONG).length,
    longest: costs.reduce((most, ms) => Math.max(most, ms), 0),
  };
}

/** From top to bottom and again for some seconds, a screen's third with each frame. */
const scroll = page =>
  page.evaluate(async () => {
    const table = document.querySelector('[role=table]');
    const end = performance.now() + 6_000;
    let at = 0;
    while (performance.now() < end) {
      at = (at + 300) % Math.max(1, table.scrollHeight);
      table.scrollTop = at;
      await new Promise(resolve => requestAnimationFrame(resolve));
    }
  });

const show = (what, text) => console.log(`${what.padEnd(46)} ${text}`);
const showTasks = (what, { tasks: n, long, longest }) =>
  show(what, `${n} tasks, ${long} above ${LONG} ms, longest ${longest.toFixed(1)} ms`);

if (!options.filled) {
  const started = Date.now();
  await fill();
  show('filling the cluster', `${OPERATIONS} operations in ${((Date.now() - started) / 1_000).toFixed(0)} s`);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
const open = async path => {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  await page.goto(PAGE + path);
  await page.getByRole('row').nth(1).waitFor();
  return page;
};

{
  const page = await open('/scheduling');
  const figures = await page.evaluate(() => ({
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
    now: performance.now(),
    bytes: performance.getEntriesByType('resource').reduce((sum, one) => sum + one.transferSize, 0),
  }));
  show('first contentful paint', `${Math.round(figures.paint)} ms`);
  show('first rows of the pools', `${Math.round(figures.now)} ms, ${Math.round(figures.bytes / 1_024)} KiB`);
  await page.getByRole('button', { name: 'Open all pools' }).click();
  await page.getByText('group-0-0').first().waitFor();
  const rows = await page.getByRole('table').getAttribute('aria-rowcount');
  showTasks(`scrolling ${rows} rows of pools`, await tasks(page, () => scroll(page)));
  showTasks('the same, left alone for 20 s', await tasks(page, () => page.waitForTimeout(20_000)));
  await page.context().close();
}
{
  const page = await open('/operations');
  showTasks('scrolling the list of operations', await tasks(page, () => scroll(page)));
  await page.context().close();
}
{
  // An hour by the page's own clock: without a stream it asks every two seconds.
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.route('**/api/millpond/stream', route => route.abort());
  await page.clock.install();
  await page.goto(`${PAGE}/scheduling`);
  await page.clock.runFor(3_000);
  await page.getByRole('row').nth(1).waitFor();
  const session = await context.newCDPSession(page);
  const heap = async () => {
    await session.send('HeapProfiler.collectGarbage');
    return (await session.send('Runtime.getHeapUsage')).usedSize / 1e6;
  };
  const round = async () => {
    const answered = page.waitForResponse('**/execute_batch');
    await page.clock.runFor(2_000);
    await answered;
  };
  const rounds = MINUTES * 30;
  for (let i = 0; i < 50; i += 1) await round();
  const before = await heap();
  for (let i = 0; i < rounds; i += 1) await round();
  const after = await heap();
  show(
    `heap after ${rounds} more rounds (${MINUTES} min)`,
    `${before.toFixed(1)} MB before, ${after.toFixed(1)} MB after`,
  );
}
await browser.close();
