/**
 * What the page costs the browser, by the browser's own profiler: first paint, and tasks of the main thread while
 * one scrolls and while the page updates itself. These are figures, not tests: they say as much about the machine
 * as about the page.
 */

import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { batch, keep, operation, pool, set } from './cluster.mjs';

const { values: options } = parseArgs({
  options: {
    operations: { type: 'string', default: '100000' },
    // The cluster at MILLPOND_URL has been filled by an earlier run.
    filled: { type: 'boolean', default: false },
  },
});
const OPERATIONS = Number(options.operations);
const PAGE = process.env.PAGE_URL ?? process.env.MILLPOND_URL;

const GROUPS = 20;
const IN_EACH = 100;
/** Milliseconds: longer tasks make a page stutter. */
const LONG = 50;

const groups = Array.from({ length: GROUPS }, (_, i) => `group-${i}`);
const pools = groups.flatMap(group => Array.from({ length: IN_EACH }, (_, i) => [`${group}-${i}`, group]));

const started = (i, more = {}) =>
  operation(pools[i % pools.length][0], `operation ${i} of a title as long as they usually are`, {
    command: 'sleep 3600',
    job_count: 1 + (i % 50),
    ...more,
  });

async function fill() {
  // The usual limits are far below.
  const most = { max_operation_count: OPERATIONS + 10_000 };
  for (const path of ['//sys/scheduler/config', '//sys/pool_trees/physical/@config']) {
    await set(`${path}/max_operation_count`, most.max_operation_count);
  }
  await batch(groups.map(name => pool(name, '<Root>', most)));
  await batch(pools.map(([name, parent]) => pool(name, parent, most)));
  // What comes at the same moment costs the scheduler one update together: hence many requests side by side.
  let next = 0;
  const worker = async () => {
    while (next < OPERATIONS) {
      const from = next;
      next = Math.min(from + 20, OPERATIONS);
      await batch(Array.from({ length: next - from }, (_, i) => started(from + i)));
    }
  };
  await Promise.all(Array.from({ length: 128 }, worker));
}

/** Shares of all pools change, and operations come, as long as something is done. */
async function whileChanging(act) {
  const stops = [
    keep(i => set(`//sys/pool_trees/physical/${groups[i % GROUPS]}/@weight`, 1 + ((i * 7) % 13)), 500),
    keep(i => batch([started(OPERATIONS + i, { command: 'true', job_count: 1 })]), 500),
  ];
  try {
    return await act();
  } finally {
    await Promise.all(stops.map(stop => stop()));
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
  const from = Date.now();
  await fill();
  show('filling the cluster', `${OPERATIONS} operations in ${((Date.now() - from) / 1_000).toFixed(0)} s`);
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
  showTasks(
    'the same, while shares change, 20 s',
    await whileChanging(() => tasks(page, () => page.waitForTimeout(20_000))),
  );
  await page.context().close();
}
{
  const page = await open('/operations');
  showTasks('scrolling the list of operations', await tasks(page, () => scroll(page)));
  showTasks('the same, while operations come', await whileChanging(() => tasks(page, () => scroll(page))));
  await page.context().close();
}
await browser.close();
