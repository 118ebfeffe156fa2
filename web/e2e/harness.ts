/** A browser, a page that tells on itself, and the API beside it. */

import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AxeBuilder } from '@axe-core/playwright';
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';

const API = process.env['MILLPOND_URL'] ?? '';
const PAGE = process.env['PAGE_URL'] ?? API;
/** Longer than anything takes on a busy machine, in milliseconds. */
const PATIENCE = 120_000;

let browser: Browser;
const open: { page: Page; complaints: string[]; expected: RegExp[] }[] = [];

/** Call once in each file. */
export function useBrowser(): void {
  beforeAll(async () => {
    const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium';
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'], timeout: PATIENCE });
  });
  afterAll(async () => {
    await browser.close();
    await tidy();
  });
  afterEach(async () => {
    const opened = open.splice(0);
    for (const { page } of opened) await page.context().close();
    // Errors of scripts and violations of the policy fail the test that saw them.
    for (const { complaints, expected } of opened) {
      expect(complaints.filter(text => !expected.some(pattern => pattern.test(text)))).toEqual([]);
    }
  });
}

export async function visit(
  path: string,
  options: BrowserContextOptions = {},
  expected: RegExp[] = [],
): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  // Of all pages of this context, also of those that a test opens itself.
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', error => complaints.push(String(error)));
  page.on('console', message => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  open.push({ page, complaints, expected });
  await page.goto(path.startsWith('/') ? PAGE + path : path);
  return page;
}

export interface Line {
  url: string;
  /** Breaks the streams of events that are open, and lets no new one through. */
  cutStreams(): void;
  /** Answers every question with this status and a text that is no error of the API, as a proxy would. */
  failWith(status: number): void;
  /** Breaks every connection of a question. */
  cut(): void;
  mend(): void;
  close(): void;
}

/** A way to the server that can be broken. */
export async function lineToServer(): Promise<Line> {
  const target = new URL(PAGE);
  const streams = new Set<ServerResponse>();
  let broken = false;
  let questions: 'pass' | 'cut' | number = 'pass';
  const server = createServer((asked, answer) => {
    const isStream = asked.url?.startsWith('/api/millpond/stream') === true;
    if (isStream && broken) return void asked.socket.destroy();
    if (asked.url?.startsWith('/api/') === true && questions !== 'pass') {
      if (questions === 'cut' || isStream) return void asked.socket.destroy();
      answer.writeHead(questions, { 'Content-Type': 'text/html' });
      return void answer.end('<h1>Something went wrong</h1>');
    }
    if (isStream) streams.add(answer);
    const { url: path, method, headers } = asked;
    const onward = request({ host: target.hostname, port: target.port, path, method, headers }, reply => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    answer.on('close', () => {
      streams.delete(answer);
      onward.destroy();
    });
    asked.pipe(onward);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const cutStreams = () => {
    broken = true;
    for (const stream of streams) stream.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cutStreams,
    failWith(status) {
      cutStreams();
      questions = status;
    },
    cut() {
      cutStreams();
      questions = 'cut';
    },
    mend() {
      broken = false;
      questions = 'pass';
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * Leaves the cluster as it was found: no operation goes on, no pool is there. Each file of tests can be run alone
 * and after any other.
 */
async function tidy(): Promise<void> {
  const unfinished = async () => {
    const { operations } = await command<{ operations: { id: string; state: string }[] }>('list_operations', {
      attributes: ['state'],
      limit: 1_000,
      include_counters: false,
    });
    return operations.filter(({ state }) => !['completed', 'failed', 'aborted'].includes(state));
  };
  await eventually(
    async () => {
      const left = await unfinished();
      const requests = left.map(({ id }) => ({
        command: 'abort_operation',
        parameters: { operation_id: id },
      }));
      if (left.length > 0) await command('execute_batch', { requests });
      return left.length;
    },
    left => left === 0,
  );
  const { value: trees } = await command<{ value: string[] }>('list', { path: '//sys/pool_trees' });
  for (const tree of trees) {
    const { value: pools } = await command<{ value: string[] }>('list', { path: `//sys/pool_trees/${tree}` });
    const requests = pools.map(pool => ({
      command: 'remove',
      parameters: { path: `//sys/pool_trees/${tree}/${pool}`, recursive: true, force: true },
    }));
    await command('execute_batch', { requests });
  }
}

/** Waits until every question that the page has asked is answered, and drawn. */
export async function settled(page: Page): Promise<void> {
  await page.locator('h1').first().waitFor();
  await eventually(
    () => page.locator('[role=status][aria-label=Loading], .g-skeleton, [aria-busy=true]').count(),
    waiting => waiting === 0,
  );
}

/** Waits for what fades or slides in; what goes round for ever is left to do so. */
export const still = (page: Page): Promise<unknown> =>
  page.evaluate(() =>
    Promise.all(
      document
        .getAnimations()
        .filter(animation => animation.effect?.getComputedTiming().endTime !== Infinity)
        .map(animation => animation.finished.catch(() => undefined)),
    ),
  );

/** Serious and critical findings of axe, by name. Colours of what fades are not those that stay. */
export async function findings(page: Page): Promise<string[]> {
  await still(page);
  const { violations } = await new AxeBuilder({ page })
    .options({ resultTypes: ['violations'] })
    .setLegacyMode()
    .analyze();
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => {
      const places = nodes.slice(0, 3).map(({ html }) => html.slice(0, 160));
      return `${id}: ${places.join(' | ')}`;
    });
}

export const command = <T = unknown>(name: string, parameters: object): Promise<T> =>
  commandAt<T>(API, {}, name, parameters);

/** A command to a server that asks who sends it. */
export async function commandAt<T = unknown>(
  api: string,
  headers: Record<string, string>,
  name: string,
  parameters: object,
): Promise<T> {
  const response = await fetch(`${api}/api/v4/${name}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(parameters),
  });
  const body: unknown = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(body));
  return body as T;
}

/** Makes a table of these rows. */
export async function writeRows(path: string, rows: object[]): Promise<void> {
  await command('create', { type: 'table', path, ignore_existing: true });
  const response = await fetch(`${API}/api/v4/write_table`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json', 'X-YT-Parameters': JSON.stringify({ path }) },
    body: rows.map(row => JSON.stringify(row)).join('\n'),
  });
  if (!response.ok) throw new Error(await response.text());
}

export async function get<T>(path: string): Promise<T> {
  return (await command<{ value: T }>('get', { path })).value;
}

export async function makePool(name: string, attributes: object = {}): Promise<void> {
  await command('create', {
    type: 'scheduler_pool',
    ignore_existing: true,
    attributes: { name, pool_tree: 'physical', ...attributes },
  });
}

export async function startOperation(
  pool: string,
  title: string,
  task: object = {},
  spec: object = {},
): Promise<string> {
  const tasks = {
    work: { command: 'sleep 3600', job_count: 1, cpu_limit: 1, memory_limit: 64 << 20, ...task },
  };
  const { operation_id } = await command<{ operation_id: string }>('start_operation', {
    operation_type: 'vanilla',
    spec: { pool, title, tasks, ...spec },
  });
  return operation_id;
}

/**
 * Chooses in a list. A dialog that is still coming up takes the focus from the list, which closes the list: it is
 * opened again then.
 */
export async function choose(page: Page, label: string, option: RegExp | string): Promise<void> {
  const box = page.getByRole('combobox', { name: label, exact: true });
  const wanted = page.getByRole('option', { name: option, exact: true });
  // In a list of several, a second click on an option takes the choice back.
  const ofSeveral = page.locator('.g-select-list_multiple').filter({ has: wanted });
  await still(page);
  const end = Date.now() + PATIENCE;
  let before: string | null | undefined;
  for (;;) {
    // A click on the box of an open list closes it, also while its options are still being drawn.
    if (!(await wanted.isVisible()) && (await box.getAttribute('aria-expanded')) !== 'true')
      await box.click();
    try {
      const now = await wanted.getAttribute('aria-selected', { timeout: 10_000 });
      before ??= now;
      // On a busy machine the browser does a click, and its answer comes after the time limit of the click.
      if (now !== before && (await ofSeveral.isVisible())) return;
      await wanted.click({ timeout: 10_000 });
      if (!(await ofSeveral.isVisible())) return;
      // On a busy machine a click on a second option was seen to change nothing.
      await eventually(
        () => wanted.getAttribute('aria-selected'),
        now => now !== before,
        10_000,
      );
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

/** Opens the menu of a row, and takes something of it. */
export async function take(page: Page, row: string, item: string): Promise<void> {
  await page.getByRole('button', { name: `Actions for ${row}`, exact: true }).click();
  await page.getByRole('menuitem', { name: item, exact: true }).click();
}

export const inDialog = (page: Page, verb: string): Locator =>
  page.getByRole('dialog').getByRole('button', { name: verb, exact: true });

export const rowsOf = (page: Page, table: string): Locator =>
  page.getByRole('table', { name: table }).locator('.table__body [role=row]');

/** The rows, as soon as there are so many and all are as they should be. */
export const rowsAre = (page: Page, table: string, count: number, text: string): Promise<string[]> =>
  eventually(
    () => rowsOf(page, table).allInnerTexts(),
    rows => rows.length === count && rows.every(row => row.includes(text)),
  );

export const stateOf = async (id: string): Promise<string> =>
  (await command<{ state: string }>('get_operation', { operation_id: id, attributes: ['state'] })).state;

export const stateOfAt = async (api: string, headers: Record<string, string>, id: string): Promise<string> =>
  (
    await commandAt<{ state: string }>(api, headers, 'get_operation', {
      operation_id: id,
      attributes: ['state'],
    })
  ).state;

/** Waits until these parameters are in the address: the browser reports a change of it after the click is done. */
export const addressHas = (page: Page, wanted: Record<string, string>): Promise<unknown> =>
  eventually(
    async () => new URL(page.url()).search,
    search => {
      const asked = new URLSearchParams(search);
      return Object.entries(wanted).every(([name, value]) => asked.get(name) === value);
    },
  );

/** Waits until a question has this answer. */
export async function eventually<T>(
  ask: () => Promise<T>,
  is: (answer: T) => boolean,
  ms = PATIENCE,
): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const answer = await ask();
    if (is(answer)) return answer;
    if (Date.now() > end) throw new Error(`still ${JSON.stringify(answer)}`);
    await new Promise(resolve => setTimeout(resolve, 200));
  }
}
