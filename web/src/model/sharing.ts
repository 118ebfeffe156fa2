/** What an answer has in common with the one before it. Whatever is the same object is not drawn again. */

/** Do two objects have the same fields? Looks no deeper than that. */
export const sameFields = (a: object, b: object): boolean => a === b || same(a, b, Object.is);

function same(a: object, b: object, are: (x: unknown, y: unknown) => boolean): boolean {
  const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const names = Object.keys(x);
  return names.length === Object.keys(y).length && names.every(name => are(x[name], y[name]));
}

/** Plain values in objects and lists. */
function sameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  return Array.isArray(a) === Array.isArray(b) && same(a, b, sameValue);
}

/**
 * The new table with the old entries wherever they say the same, or the old table if all of them do. For
 * thousands of entries that are drawn one by one this is all the sharing that is worth its time.
 */
export function shareEntries<T extends object>(old: unknown, table: T): T {
  if (typeof old !== 'object' || old === null) return table;
  const before = old as Record<string, unknown>;
  const shared = Object.fromEntries(
    Object.entries(table).map(([name, entry]: [string, unknown]) => [
      name,
      sameValue(before[name], entry) ? before[name] : entry,
    ]),
  );
  return sameFields(before, shared) ? (old as T) : (shared as T);
}
