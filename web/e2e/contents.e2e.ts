/** What is in tables and files, on the page of the tree. */

import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { command, findings, rowsOf, useBrowser, visit } from './harness';

useBrowser();

const FOLDER = '//tmp/e2e-contents';
const API = process.env['MILLPOND_URL'] ?? '';

async function write(what: 'table' | 'file', path: string, body: string): Promise<void> {
  const response = await fetch(`${API}/api/v4/write_${what}`, {
    method: 'PUT',
    headers: {
      'X-YT-Parameters': JSON.stringify({ path }),
      'X-YT-Input-Format': '{"$value":"json","$attributes":{"encode_utf8":false}}',
    },
    body,
  });
  expect(response.ok, await response.text()).toBe(true);
}

beforeAll(async () => {
  for (const [type, name] of [
    ['table', 'numbers'],
    ['table', 'empty'],
    ['file', 'words.txt'],
  ]) {
    await command('create', { type, path: `${FOLDER}/${name}`, recursive: true, force: true });
  }
  const rows = Array.from({ length: 700 }, (_, n) => ({ n, name: `Zeile ${n} – ü`, odd: n % 2 === 1 }));
  const lines = rows.map(row => JSON.stringify(row.n === 1 ? { ...row, list: [1, null] } : row));
  await write('table', `${FOLDER}/numbers`, `${lines.join('\n')}\n`);
  await write('file', `${FOLDER}/words.txt`, 'a few words');
});
afterAll(async () => {
  await command('remove', { path: FOLDER, recursive: true, force: true });
});

test('a table: its first rows in columns, and how many there are', async () => {
  const page = await visit(`/tree?path=${FOLDER}/numbers`);
  await page.getByText('The first 500 of 700 rows').waitFor();
  const table = page.getByRole('table', { name: 'Rows' });
  for (const column of ['n', 'name', 'odd', 'list']) {
    await table.getByRole('columnheader', { name: column, exact: true }).waitFor();
  }
  await table.getByRole('row', { name: /^0 0 Zeile 0 – ü false/ }).waitFor();
  await table.getByRole('row', { name: /^1 1 Zeile 1 – ü true \[1,null\]/ }).waitFor();
  expect(await table.getAttribute('aria-rowcount')).toBe('501');
  expect(await rowsOf(page, 'Rows').count()).toBeLessThan(100);
  expect(await findings(page)).toEqual([]);
});

test('a table without rows', async () => {
  const page = await visit(`/tree?path=${FOLDER}/empty`);
  await page.getByText('The table has no rows.').waitFor();
  expect(await findings(page)).toEqual([]);
});

test('a file: its size, and what the browser saves', async () => {
  const page = await visit(`/tree?path=${FOLDER}/words.txt`);
  await page.getByText('11 B', { exact: true }).waitFor();
  expect(await findings(page)).toEqual([]);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe('words.txt');
  expect(await readFile((await download.path()) ?? '', 'utf8')).toBe('a few words');
});
