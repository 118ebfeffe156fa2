/** Users, groups and lists of access, on a server that asks who one is. */

import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import {
  choose,
  commandAt,
  eventually,
  findings,
  inDialog,
  rowsOf,
  stateOfAt,
  still,
  take,
  useBrowser,
  visit,
} from './harness';

useBrowser();

const API = process.env['GUARDED_URL'] ?? '';
const PAGE = process.env['GUARDED_PAGE'] ?? API;
const TOKEN = process.env['GUARDED_TOKEN'] ?? '';
const REFUSED = [/status of 40[013]/];

const asRoot = <T = unknown>(name: string, parameters: object): Promise<T> =>
  commandAt<T>(API, { Authorization: `OAuth ${TOKEN}` }, name, parameters);
const get = async <T>(path: string): Promise<T> => (await asRoot<{ value: T }>('get', { path })).value;

async function asRootAt(path: string): Promise<Page> {
  const page = await visit(PAGE + path, {}, REFUSED);
  await page.getByRole('button', { name: 'With a token', exact: true }).click();
  await page.getByLabel('Token').fill(TOKEN);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Signed in as root' }).waitFor();
  return page;
}

const closed = (page: Page) => page.getByRole('dialog').waitFor({ state: 'detached' });

/** Chooses among users and groups, and closes the list again. */
async function pick(page: Page, label: string, ...names: string[]): Promise<void> {
  const box = page.getByRole('combobox', { name: label, exact: true });
  for (const name of names) {
    const before = await box.textContent();
    await choose(page, label, name);
    // A click that was lost, or came twice, is noticed here and not at the end.
    await eventually(
      () => box.textContent(),
      text => text !== before,
    );
  }
  // Where the list is closed already the key would close the dialog. A list that is closing can still be seen.
  if ((await box.getAttribute('aria-expanded')) === 'true') await page.keyboard.press('Escape');
  await page.getByRole('listbox').waitFor({ state: 'detached' });
}

afterAll(async () => {
  for (const path of ['//sys/pool_trees/physical/shared', '//sys/users/carl', '//sys/groups/crew']) {
    await asRoot('remove', { path, force: true });
  }
});

test('a user is made, put into a group, given a password, banned, and removed', async () => {
  const page = await asRootAt('/people');
  await page.getByRole('button', { name: 'Create user' }).click();
  await page.locator('#subject-name').fill('carl');
  await inDialog(page, 'Create').click();
  await closed(page);
  await rowsOf(page, 'Users').filter({ hasText: 'carl' }).waitFor();
  expect(await findings(page)).toEqual([]);

  await take(page, 'carl', 'Set a password');
  await page.locator('#password-new').fill('correct horse');
  await page.locator('#password-again').fill('battery');
  await page.getByText('These are two different passwords').waitFor();
  expect(await inDialog(page, 'Set').isDisabled()).toBe(true);
  await page.locator('#password-again').fill('correct horse');
  await still(page);
  expect(await findings(page)).toEqual([]);
  await inDialog(page, 'Set').click();
  await closed(page);

  await page.getByRole('tab', { name: 'Groups' }).click();
  await page.getByRole('button', { name: 'Create group' }).click();
  await page.locator('#subject-name').fill('crew');
  await inDialog(page, 'Create').click();
  await closed(page);
  await take(page, 'crew', 'Change members');
  await pick(page, 'Members', 'carl');
  await inDialog(page, 'Save').click();
  await closed(page);
  await rowsOf(page, 'Groups').filter({ hasText: 'crew' }).getByText('carl').waitFor();
  expect(await get('//sys/groups/crew/@members')).toEqual(['carl']);
  expect(await findings(page)).toEqual([]);

  // The password is one: it opens the page.
  const carl = await visit(`${PAGE}/people`, {}, REFUSED);
  await carl.getByLabel('User', { exact: true }).fill('carl');
  await carl.getByLabel('Password').fill('correct horse');
  await carl.getByRole('button', { name: 'Sign in' }).click();
  await rowsOf(carl, 'Users').filter({ hasText: 'carl' }).getByText('crew').waitFor();
  // Of people carl may change nothing but his own password.
  await carl.getByRole('button', { name: 'Actions for carl' }).click();
  await carl.getByRole('menuitem', { name: 'Set a password' }).waitFor();
  expect(await carl.getByRole('menuitem').count()).toBe(1);
  expect(await carl.getByRole('button', { name: 'Create user' }).count()).toBe(0);

  await page.getByRole('tab', { name: 'Users' }).click();
  await take(page, 'carl', 'Ban');
  await inDialog(page, 'Ban').click();
  await closed(page);
  expect(await get('//sys/users/carl/@banned')).toBe(true);
  await carl.reload();
  await carl.getByText('User "carl" is banned').first().waitFor();
  await take(page, 'carl', 'Lift the ban');
  await inDialog(page, 'Lift').click();
  await closed(page);

  await page.getByRole('tab', { name: 'Groups' }).click();
  await take(page, 'crew', 'Change members');
  await pick(page, 'Members', 'carl');
  await inDialog(page, 'Save').click();
  await closed(page);
  expect(await get('//sys/groups/crew/@members')).toEqual([]);
  await take(page, 'crew', 'Remove');
  await inDialog(page, 'Remove').click();
  await closed(page);
  await rowsOf(page, 'Groups').filter({ hasText: 'crew' }).waitFor({ state: 'detached' });
  await page.getByRole('tab', { name: 'Users' }).click();
  await take(page, 'carl', 'Remove');
  await inDialog(page, 'Remove').click();
  await closed(page);
  await rowsOf(page, 'Users').filter({ hasText: 'carl' }).waitFor({ state: 'detached' });
});

test('who answers for a new pool; its list of access is changed, and says who may', async () => {
  for (const name of ['dora', 'emil']) {
    await asRoot('create', { type: 'user', attributes: { name }, ignore_existing: true });
  }
  const page = await asRootAt('/scheduling');
  await page.getByRole('button', { name: 'Create pool' }).click();
  await page.locator('#pool-name').fill('shared');
  await pick(page, 'Responsible', 'dora');
  await inDialog(page, 'Create').click();
  await page.getByRole('heading', { name: 'shared' }).waitFor();
  await page.getByText('responsible: dora').waitFor();

  await page.getByRole('tab', { name: 'Access' }).click();
  const own = page.getByRole('table', { name: 'Its own list' });
  await own.getByRole('row', { name: /dora may write, use, administer/ }).waitFor();
  await page
    .getByRole('table', { name: 'From above' })
    .getByRole('row', { name: /users may use.* \/\/sys\/pool_trees$/ })
    .waitFor();
  expect(await findings(page)).toEqual([]);
  const ask = async (user: string) => {
    await page.getByLabel('User to ask about').fill(user);
    await choose(page, 'Permission to ask about', 'write');
    await page.getByRole('button', { name: 'Ask', exact: true }).click();
  };
  await ask('emil');
  await page.getByText('emil may not write: no entry allows it').waitFor();

  await page.getByRole('tabpanel').getByRole('button', { name: 'Edit', exact: true }).click();
  await inDialog(page, 'Add an entry').click();
  await page.getByText('Whom is it about?').waitFor();
  expect(await inDialog(page, 'Save').isDisabled()).toBe(true);
  await pick(page, 'Users and groups of entry 2', 'emil');
  await pick(page, 'Permissions of entry 2', 'write');
  await still(page);
  expect(await findings(page)).toEqual([]);
  await inDialog(page, 'Save').click();
  await closed(page);
  await own.getByRole('row', { name: /emil may write, use/ }).waitFor();
  await ask('emil');
  await page.getByText(/emil may write: an entry for emil at .*shared/).waitFor();

  await page.getByRole('tabpanel').getByRole('button', { name: 'Edit', exact: true }).click();
  await inDialog(page, 'Remove entry 2').click();
  await inDialog(page, 'Save').click();
  await closed(page);
  await own.getByText('emil').waitFor({ state: 'detached' });
  expect(await get<{ subjects: string[] }[]>('//sys/pool_trees/physical/shared/@acl')).toMatchObject([
    { subjects: ['dora'] },
  ]);
});

test('the list of access of an operation: somebody else may manage it', async () => {
  await asRoot('create', { type: 'user', attributes: { name: 'emil' }, ignore_existing: true });
  const { operation_id } = await asRoot<{ operation_id: string }>('start_operation', {
    operation_type: 'vanilla',
    spec: {
      title: 'lent to emil',
      tasks: { work: { command: 'sleep 3600', job_count: 1, memory_limit: 64 << 20 } },
    },
  });
  const may = async () =>
    (
      await asRoot<{ action: string }>('check_operation_permission', {
        operation_id,
        user: 'emil',
        permission: 'manage',
      })
    ).action;
  expect(await may()).toBe('deny');
  const page = await asRootAt(`/operations/${operation_id}`);
  await page.getByRole('button', { name: 'Access', exact: true }).click();
  await inDialog(page, 'Add an entry').click();
  await page.getByText('Whom is it about?').waitFor();
  const last = await page.getByRole('combobox', { name: /^Users and groups of entry/ }).count();
  await pick(page, `Users and groups of entry ${last}`, 'emil');
  await pick(page, `Permissions of entry ${last}`, 'manage');
  await inDialog(page, 'Save').click();
  await closed(page);
  await eventually(may, action => action === 'allow');
  await asRoot('abort_operation', { operation_id });
  await eventually(
    () => stateOfAt(API, { Authorization: `OAuth ${TOKEN}` }, operation_id),
    state => state === 'aborted',
  );
});
