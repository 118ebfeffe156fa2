/** Colours of pools on the map of nodes. */

/** Told apart by most eyes, on light and on dark. */
const PALETTE = [
  '#2a9aa0',
  '#d9822b',
  '#7a5cc4',
  '#6b9b37',
  '#c4527a',
  '#3f7fc9',
  '#b8a02a',
  '#9a6a4a',
  '#4fb286',
  '#a05cb0',
  '#cf5f4a',
  '#6d7f92',
];

function hash(name: string): number {
  let value = 2166136261;
  for (const character of name) {
    value ^= character.codePointAt(0) ?? 0;
    value = Math.imul(value, 16777619);
  }
  return value >>> 0;
}

/**
 * A colour for each of these pools. The name chooses it, so that a pool keeps its colour from day to day; one
 * whose colour is taken gets the next that is free, and with more pools than colours they repeat.
 */
export function poolColors(names: Iterable<string>): (name: string) => string {
  const taken = new Map<number, string>();
  const colors = new Map<string, string>();
  for (const name of [...new Set(names)].sort()) {
    const wanted = hash(name) % PALETTE.length;
    let slot = wanted;
    for (let step = 0; step < PALETTE.length && taken.has(slot); step += 1)
      slot = (wanted + step) % PALETTE.length;
    taken.set(slot, name);
    colors.set(name, PALETTE[slot] ?? '');
  }
  return name => colors.get(name) ?? 'var(--mp-demand)';
}
