/** What lists offer to be chosen. */

/**
 * Names in an order that stays while a list is open. The list keeps its rows by their number: a name that came in
 * before others would take a click that is meant for one of them. So names that arrive follow those that were there
 * first, and a choice moves none.
 */
export function namesOffered(
  first: readonly string[],
  known: readonly string[],
  chosen: readonly string[],
): string[] {
  return [...new Set([...first, ...known, ...chosen])];
}
