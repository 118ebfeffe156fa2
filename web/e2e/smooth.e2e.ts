/** Large trees and long lists stay smooth: no task of the browser's main thread is long while one scrolls. */

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, useBrowser, visit } from './harness';

useBrowser();

const GROUPS = 20;
const IN_EACH = 100;
/** Milliseconds of processor time: above it scrolling would stutter. */
const LONGEST = 50;

beforeAll(async () => {
  const pool = (name: string, parent: string) => ({
    command: 'create',
    parameters: {
      type: 'scheduler_pool',
      ignore_existing: true,
      attributes: { name, parent_name: parent, pool_tree: 'physical' },
    },
  });
  const groups = Array.from({ length: GROUPS }, (_, i) => `group-${i}`);
  await command('execute_batch', { requests: groups.map(name => pool(name, '<Root>')) });
  for (const group of groups) {
    const inside = Array.from({ length: IN_EACH }, (_, i) => pool(`${group}-${i}`, group));
    await command('execute_batch', { requests: inside });
  }
});

// The other files look for single pools, which would be out of sight among two thousand.
afterAll(async () => {
  const requests = Array.from({ length: GROUPS }, (_, i) => ({
    command: 'remove',
    parameters: { path: `//sys/pool_trees/physical/group-${i}`, recursive: true, force: true },
  }));
  await command('execute_batch', { requests });
});

/** Scrolls the table from top to bottom and again for some seconds. */
async function scroll(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const table = document.querySelector('[role=table]');
    if (table === null) throw new Error('no table');
    const end = performance.now() + 6_000;
    let at = 0;
    while (performance.now() < end) {
      at = (at + 300) % Math.max(1, table.scrollHeight);
      table.scrollTop = at;
      await new Promise(resolve => requestAnimationFrame(resolve));
    }
  });
}

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** Microseconds of the clock, and of the processor. */
  dur?: number;
  tdur?: number;
  args?: { name?: string };
}

/**
 * The longest task of the page's main thread, in milliseconds of processor time: that of the clock says more
 * about what else runs on the machine.
 */
async function longestTask(page: Page, during: () => Promise<void>): Promise<number> {
  const browser = page.context().browser();
  if (browser === null) throw new Error('no browser');
  await browser.startTracing(page, { categories: ['toplevel', 'disabled-by-default-devtools.timeline'] });
  await during();
  const trace = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const main = new Set(
    trace.traceEvents
      .filter(event => event.name === 'thread_name' && event.args?.name === 'CrRendererMain')
      .map(event => `${event.pid} ${event.tid}`),
  );
  const tasks = trace.traceEvents.filter(
    event => event.ph === 'X' && event.tdur !== undefined && main.has(`${event.pid} ${event.tid}`),
  );
  expect(tasks.length).toBeGreaterThan(100);
  return Math.max(...tasks.map(task => (task.tdur ?? 0) / 1_000));
}

test('a tree of two thousand pools', async () => {
  const page = await visit('/scheduling');
  await page.getByText('group-0').first().waitFor();
  await page.getByRole('button', { name: 'Open all pools' }).click();
  await page.getByText('group-0-0').first().waitFor();
  const rows = await page.getByRole('table').getAttribute('aria-rowcount');
  expect(Number(rows)).toBeGreaterThan(GROUPS * IN_EACH);
  // As many rows are in the document as can be seen.
  expect(await page.getByRole('row').count()).toBeLessThan(80);
  const longest = await longestTask(page, () => scroll(page));
  console.log(`longest task while scrolling ${rows} rows: ${longest.toFixed(1)} ms of processor time`);
  expect(longest).toBeLessThan(LONGEST);
});

test('the first useful paint comes within a second', async () => {
  const page = await visit('/scheduling');
  await page.getByText('group-0').first().waitFor();
  const ms = await page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
  );
  console.log(`first contentful paint: ${Math.round(ms)} ms`);
  expect(ms).toBeLessThan(1_000);
});

test('a page that is left open does not grow', async () => {
  const page = await visit('/scheduling');
  await page.getByText('group-0').first().waitFor();
  const session = await page.context().newCDPSession(page);
  const size = async (): Promise<number> => {
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    return usedSize;
  };
  await page.waitForTimeout(5_000);
  const before = await size();
  await page.waitForTimeout(20_000);
  const after = await size();
  console.log(
    `heap: ${(before / 1e6).toFixed(1)} MB, ${(after / 1e6).toFixed(1)} MB after ten rounds of questions`,
  );
  expect(after - before).toBeLessThan(3e6);
});
