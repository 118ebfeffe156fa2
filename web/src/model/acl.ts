/** Lists of access: entries as people edit them, and as the server wants them (http-api.md 8.4). */

export interface Ace {
  action: 'allow' | 'deny';
  subjects: string[];
  permissions: string[];
  inheritance_mode?: string;
  /** Whatever else an entry has stays as it is. */
  [more: string]: unknown;
}

export const INHERITANCE: Record<string, string> = {
  object_and_descendants: 'here and below',
  object_only: 'here',
  descendants_only: 'below',
  immediate_descendants_only: 'directly below',
};
export const USUAL_INHERITANCE = 'object_and_descendants';

/** Those that mean something for pools. */
export const POOL_PERMISSIONS = ['use', 'write', 'administer', 'read', 'remove', 'create', 'modify_children'];
export const OPERATION_PERMISSIONS = ['read', 'manage'];
export const NODE_PERMISSIONS = [
  'read',
  'write',
  'administer',
  'create',
  'remove',
  'mount',
  'use',
  'manage',
  'modify_children',
  'register_queue_consumer',
  'full_read',
];

export const newAce = (permission: string): Ace => ({
  action: 'allow',
  subjects: [],
  permissions: [permission],
});

/** What is missing in an entry, in words. */
export function aceProblem(ace: Ace): string | undefined {
  if (ace.subjects.length === 0) return 'Whom is it about? Choose users or groups.';
  if (ace.permissions.length === 0) return 'To do what? Choose permissions.';
  return undefined;
}

/** In words, e.g. `ann, team may use, write`. */
export const aceInWords = ({ action, subjects, permissions }: Ace): string =>
  `${subjects.join(', ')} ${action === 'deny' ? 'may not' : 'may'} ${permissions.join(', ')}`;

/** What people who answer for a pool get. */
export const responsibleAce = (subjects: string[]): Ace => ({
  action: 'allow',
  subjects,
  permissions: ['use', 'write', 'administer'],
});

/** Who answers for it: whoever may change all of it by an entry of its own. */
export const responsiblesOf = (acl: readonly Ace[]): string[] => [
  ...new Set(
    acl
      .filter(ace => ace.action === 'allow' && ace.permissions.includes('administer'))
      .flatMap(ace => ace.subjects),
  ),
];

/** A list above something. */
export interface ListAbove {
  path: string;
  acl: readonly Ace[];
}

/**
 * Where entries from above are from: both are in the order nearest first, so each is looked for from the place of
 * the one before it on. What reaches down may have another inheritance there, all else is the same.
 */
export function placesOf(entries: readonly Ace[], lists: readonly ListAbove[]): (string | undefined)[] {
  const all = lists.flatMap(({ path, acl }) => acl.map(ace => ({ path, ace })));
  let next = 0;
  return entries.map(entry => {
    const found = all.findIndex(({ ace }, index) => index >= next && isSame(ace, entry));
    if (found < 0) return undefined;
    next = found + 1;
    return all[found]?.path;
  });
}

const isSame = (one: Ace, other: Ace): boolean =>
  one.action === other.action &&
  one.subjects.join('\n') === other.subjects.join('\n') &&
  [...one.permissions].sort().join() === [...other.permissions].sort().join();
