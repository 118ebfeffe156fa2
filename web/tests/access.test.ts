import { describe, expect, test } from 'vitest';
import {
  aceProblem,
  inheritedFrom,
  newAce,
  responsibleAce,
  responsiblesOf,
  type Ace,
} from '../src/model/acl';
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

describe('entries from above', () => {
  const entry = (subject: string, inheritance_mode?: string): Ace => ({
    action: 'allow',
    subjects: [subject],
    permissions: ['read'],
    ...(inheritance_mode === undefined ? {} : { inheritance_mode }),
  });
  const lists = [
    {
      path: '//a',
      acl: [entry('near', 'immediate_descendants_only'), entry('self', 'object_only')],
      inherits: true,
    },
    {
      path: '//',
      acl: [entry('far'), entry('below', 'descendants_only'), entry('next', 'immediate_descendants_only')],
      inherits: true,
    },
  ];
  const names = (of: ReturnType<typeof inheritedFrom>) => of.map(({ ace }) => ace.subjects[0]);

  test('count as far as they reach', () => {
    expect(names(inheritedFrom(lists, true))).toEqual(['near', 'far', 'below']);
  });

  test('end at the first list that takes nothing from above', () => {
    expect(names(inheritedFrom(lists, false))).toEqual([]);
    const cut = lists.map(list => ({ ...list, inherits: false }));
    expect(names(inheritedFrom(cut, true))).toEqual(['near']);
  });
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
