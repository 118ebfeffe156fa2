import { describe, expect, test } from 'vitest';
import { aceProblem, newAce, placesOf, responsibleAce, responsiblesOf, type Ace } from '../src/model/acl';
import { namesOffered } from '../src/model/choices';
import { areFavourites, MOST, toggled, type Favourite } from '../src/model/favourites';

describe('lists of access', () => {
  const entry = (subjects: string[], permissions: string[], action: Ace['action'] = 'allow'): Ace => ({
    action,
    subjects,
    permissions,
  });

  test('an entry says what is missing in it', () => {
    expect(aceProblem(newAce('use'))).toMatch(/Whom/);
    expect(aceProblem(entry(['ann'], []))).toMatch(/To do what/);
    expect(aceProblem(entry(['ann'], ['use']))).toBeUndefined();
  });

  test('who answers for a pool: those who may administer it, each once', () => {
    const acl = [
      responsibleAce(['ann', 'team']),
      entry(['bob'], ['use', 'write']),
      entry(['carl'], ['administer'], 'deny'),
      entry(['ann', 'dora'], ['administer']),
    ];
    expect(responsiblesOf(acl)).toEqual(['ann', 'team', 'dora']);
    expect(responsiblesOf([])).toEqual([]);
  });
});

describe('names in a list that is open', () => {
  test('those that arrive while it is open move none that was there', () => {
    const before = namesOffered(['dora', 'gone'], [], ['dora', 'gone']);
    const after = namesOffered(['dora', 'gone'], ['team', 'ann', 'dora'], ['dora', 'gone']);
    expect(after).toEqual(['dora', 'gone', 'team', 'ann']);
    expect(after.slice(0, before.length)).toEqual(before);
  });

  test('a choice, and one that is taken back, move none', () => {
    const known = ['team', 'ann', 'dora'];
    const offered = namesOffered(['dora'], known, ['dora']);
    expect(namesOffered(['dora'], known, ['dora', 'ann'])).toEqual(offered);
    expect(namesOffered(['dora'], known, [])).toEqual(offered);
  });

  test('one that is not known any more leaves no gap while the list is open', () => {
    expect(namesOffered(['running', 'waiting', 'failed'], ['aborted', 'failed'], [])).toEqual([
      'running',
      'waiting',
      'failed',
      'aborted',
    ]);
  });
});

test('entries from above are looked for in the lists above, nearest first', () => {
  const entry = (subject: string, inheritance_mode?: string): Ace => ({
    action: 'allow',
    subjects: [subject],
    permissions: ['read', 'write'],
    ...(inheritance_mode === undefined ? {} : { inheritance_mode }),
  });
  const lists = [
    { path: '//a/b', acl: [entry('self', 'object_only'), entry('near', 'immediate_descendants_only')] },
    { path: '//a', acl: [entry('both')] },
    { path: '//', acl: [entry('both', 'descendants_only'), entry('far')] },
  ];
  const told = [entry('near', 'object_only'), entry('both'), entry('both'), entry('hidden'), entry('far')];
  told[4] = { ...entry('far'), permissions: ['write', 'read'] };
  expect(placesOf(told, lists)).toEqual(['//a/b', '//a', '//', undefined, '//']);
  expect(placesOf([{ ...entry('far'), action: 'deny' }], lists)).toEqual([undefined]);
});

describe('favourites', () => {
  const page = (href: string): Favourite => ({ href, title: href, kind: 'pool' });

  test('come first, go at the second click, and are not more than a list can have', () => {
    const two = toggled(toggled([], page('/a')), page('/b'));
    expect(two.map(({ href }) => href)).toEqual(['/b', '/a']);
    expect(toggled(two, page('/a')).map(({ href }) => href)).toEqual(['/b']);
    const many = Array.from({ length: MOST }, (_, i) => page(`/${i}`));
    const more = toggled(many, page('/new'));
    expect([more.length, more[0]?.href, more.at(-1)?.href]).toEqual([MOST, '/new', `/${MOST - 2}`]);
  });

  test('that another version of the page has kept are none', () => {
    expect(areFavourites([page('/a')])).toBe(true);
    for (const other of [null, {}, [null], [{ href: 1 }], [{ href: '/a', title: 'a' }], 'x']) {
      expect(areFavourites(other)).toBe(false);
    }
  });
});
