/** Colours of pools on the map of nodes. */

/** Told apart by most eyes, on light and on dark: neighbours in hue differ in lightness. */
const PALETTE = [
  '#1f8a92',
  '#e08a2e',
  '#6a4fc0',
  '#8fbf4d',
  '#c23f73',
  '#4d9be6',
  '#b3982c',
  '#8a5a3c',
  '#69cfa8',
  '#b884dd',
  '#d9604a',
  '#66788a',
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
