/** Users and groups: who there is, and what administrators do with them. */

import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { call, callWithInput, escapePath, get, getOr, list } from './client';
import { Refusal, UNREACHABLE } from './errors';
import { placesOf, type Ace } from '../model/acl';
import { stepsOf } from '../model/paths';

export const USERS = '//sys/users';
export const GROUPS = '//sys/groups';

export interface User {
  name: string;
  banned: boolean;
  /** Groups, without those that they are in by way of others. */
  groups: string[];
}

export interface Group {
  name: string;
  /** Users and groups. */
  members: string[];
}

type Listed<A> = string | { $value: string; $attributes?: Partial<A> };

async function listed<A extends object>(
  path: string,
  attributes: (keyof A & string)[],
): Promise<[string, Partial<A>][]> {
  const all = await list<Listed<A>>(path, { attributes, max_size: 100_000 });
  return all
    .map((one): [string, Partial<A>] =>
      typeof one === 'string' ? [one, {}] : [one.$value, one.$attributes ?? {}],
    )
    .sort(([a], [b]) => a.localeCompare(b));
}

export async function users(): Promise<User[]> {
  const all = await listed<{ banned: boolean; member_of: string[] }>(USERS, ['banned', 'member_of']);
  return all.map(([name, { banned, member_of }]) => ({
    name,
    banned: banned === true,
    groups: member_of ?? [],
  }));
}

export async function groups(): Promise<Group[]> {
  const all = await listed<{ members: string[] }>(GROUPS, ['members']);
  return all.map(([name, { members }]) => ({ name, members: members ?? [] }));
}

/** Names of all users and groups; of those that one may not list, none. */
export async function subjects(): Promise<string[]> {
  const names = async (path: string) => {
    try {
      return await list(path, { max_size: 100_000 });
    } catch (error) {
      if (error instanceof Refusal && error.tree.code !== UNREACHABLE) return [];
      throw error;
    }
  };
  const [people, teams] = await Promise.all([names(USERS), names(GROUPS)]);
  return [...teams.sort(), ...people.sort()];
}

export const createSubject = (type: 'user' | 'group', name: string): Promise<unknown> =>
  call('create', { type, attributes: { name } });
export const removeSubject = (type: 'user' | 'group', name: string): Promise<unknown> =>
  call('remove', { path: `${type === 'user' ? USERS : GROUPS}/${escapePath(name)}` });
export const setBanned = (user: string, banned: boolean): Promise<void> =>
  callWithInput('set', { path: `${USERS}/${escapePath(user)}/@banned` }, banned);

/** The server gets the SHA-256 only, and hashes that again. */
export function setPassword(user: string, password: string): Promise<unknown> {
  return call('set_user_password', {
    user,
    // The browser's own needs a page that came over TLS.
    new_password_sha256: bytesToHex(sha256(new TextEncoder().encode(password))),
  });
}

/** Adds and takes away members until there are these; the first refusal ends it. */
export async function changeMembers(group: string, before: string[], after: string[]): Promise<void> {
  for (const member of after.filter(name => !before.includes(name))) {
    await call('add_member', { group, member });
  }
  for (const member of before.filter(name => !after.includes(name))) {
    await call('remove_member', { group, member });
  }
}

export interface Access {
  /** Its own entries. */
  acl: Ace[];
  /** Those from above that count here, nearest first, with the place that they are from, as far as one may see. */
  above: { from: string | undefined; ace: Ace }[];
}

/** What counts here is the server's answer; the lists above only say where an entry is from. */
export async function access(path: string): Promise<Access> {
  const places = stepsOf(path).reverse().slice(1);
  const [{ acl = [], effective_acl: effective = acl }, ...lists] = await Promise.all([
    get<{ acl?: Ace[]; effective_acl?: Ace[] }>(`${path}/@`, { attributes: ['acl', 'effective_acl'] }),
    // A tree of pools has no list of its own.
    ...places.map(async ({ path: at }) => ({ path: at, acl: await getOr<Ace[]>(`${at}/@acl`, []) })),
  ]);
  const above = effective.slice(acl.length);
  const from = placesOf(above, lists);
  return { acl, above: above.map((ace, index) => ({ ace, from: from[index] })) };
}

export const ownAcl = (path: string): Promise<Ace[]> => get(`${path}/@acl`);

export const setAcl = (path: string, acl: Ace[]): Promise<void> =>
  callWithInput('set', { path: `${path}/@acl` }, acl);

export interface Decision {
  action: 'allow' | 'deny';
  object_name?: string;
  subject_name?: string;
}

/** May they? And whose entry says so. */
export const decision = (user: string, permission: string, path: string): Promise<Decision> =>
  call('check_permission', { user, permission, path });
