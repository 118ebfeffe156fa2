/**
 * Large trees cost no more than small ones: rows that cannot be seen are not in the document, and of a jump a few
 * are drawn at a time. How long the browser takes is measured by `bench/run.sh`.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, eventually, findings, get, useBrowser, visit } from './harness';

useBrowser();

const GROUPS = 100;
const IN_EACH = 100;

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
  // Side by side: what comes at the same moment costs the scheduler one update together.
  const fill = (group: string) =>
    command('execute_batch', {
      requests: Array.from({ length: IN_EACH }, (_, i) => pool(`${group}-${i}`, group)),
    });
  await Promise.all(groups.map(fill));
  // The page opens the pools that it knows: all of them must be published.
  await eventually(
    () => get<number>('//sys/scheduler/orchid/scheduler/pool_trees/physical/pool_count'),
    count => count >= GROUPS * (IN_EACH + 1),
  );
});

// The other files look for single pools, which would be out of sight among ten thousand.
afterAll(async () => {
  const requests = Array.from({ length: GROUPS }, (_, i) => ({
    command: 'remove',
    parameters: { path: `//sys/pool_trees/physical/group-${i}`, recursive: true, force: true },
  }));
  await command('execute_batch', { requests });
});

test('a tree of ten thousand pools has as many rows in the document as can be seen', async () => {
  const page = await visit('/scheduling');
  await page.getByText('group-0').first().waitFor();
  await page.getByRole('button', { name: 'Open all pools' }).click();
  await page.getByText('group-0-0').first().waitFor();
  const table = page.getByRole('table');
  // With the pools of each group and the head.
  await eventually(
    () => table.getAttribute('aria-rowcount'),
    count => Number(count) > GROUPS * (IN_EACH + 1),
  );
  expect(await page.getByRole('row').count()).toBeLessThan(80);
  await table.evaluate(element => element.scrollTo(0, element.scrollHeight));
  await page.getByText('group-99-99').waitFor();
  // The rows of a jump come in several frames, also when nobody scrolls on.
  for (const part of [1, 0.5, 0]) {
    await table.evaluate((element, part) => element.scrollTo(0, element.scrollHeight * part), part);
    const emptySpace = () =>
      table.evaluate(element => {
        const boxes = [...element.querySelectorAll('.table__body [role=row]')].map(row =>
          row.getBoundingClientRect(),
        );
        const top = element.getBoundingClientRect().top + element.clientTop;
        const bottom = top + element.clientHeight;
        const head = element.querySelector('[role=row]')?.getBoundingClientRect().height ?? 0;
        const above = Math.min(...boxes.map(box => box.top)) - (top + head);
        const below = bottom - Math.max(...boxes.map(box => box.bottom));
        return Math.max(above, below);
      });
    // Parts of pixels may be left.
    await eventually(emptySpace, space => space < 2);
  }
  expect(await page.getByRole('row').count()).toBeLessThan(80);
  expect(await findings(page)).toEqual([]);
});
