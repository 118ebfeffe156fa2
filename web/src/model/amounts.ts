/** Amounts as people type them: `8`, `0.5`, `16GiB`, `512 MiB`. */

const UNITS: Record<string, number> = {
  '': 1,
  b: 1,
  k: 1e3,
  kb: 1e3,
  kib: 1024,
  ki: 1024,
  m: 1e6,
  mb: 1e6,
  mib: 1024 ** 2,
  mi: 1024 ** 2,
  g: 1e9,
  gb: 1e9,
  gib: 1024 ** 3,
  gi: 1024 ** 3,
  t: 1e12,
  tb: 1e12,
  tib: 1024 ** 4,
  ti: 1024 ** 4,
};

/** `undefined` for no text, a message for text that is no amount. */
export function parseAmount(resource: string, typed: string): number | undefined | { wrong: string } {
  const text = typed.trim();
  if (text === '') return undefined;
  const match = /^([+-]?\d*\.?\d+(?:e[+-]?\d+)?)\s*([a-z]*)$/i.exec(text);
  const unit = UNITS[(match?.[2] ?? '').toLowerCase()];
  if (match === null || unit === undefined) return { wrong: `Expected a number, found "${text}"` };
  const isMemory = resource === 'memory';
  if (!isMemory && match[2] !== '') return { wrong: `Expected a number without a unit, found "${text}"` };
  const value = Number(match[1]) * unit;
  if (resource === 'cpu') return value;
  // Only processors come in fractions.
  if (isMemory) return Math.round(value);
  return Number.isInteger(value) ? value : { wrong: `Expected a whole number, found "${text}"` };
}

export const isWrong = (value: unknown): value is { wrong: string } =>
  typeof value === 'object' && value !== null && 'wrong' in value;

/** As it would be typed; exact, unlike what is shown in tables. */
export function editedAmount(resource: string, value: number | undefined): string {
  if (value === undefined) return '';
  if (resource !== 'memory') return String(value);
  for (const unit of ['TiB', 'GiB', 'MiB', 'KiB']) {
    const size = UNITS[unit.toLowerCase()] ?? 1;
    if (value >= size && Number.isInteger((value / size) * 4)) return `${value / size}${unit}`;
  }
  return String(value);
}
