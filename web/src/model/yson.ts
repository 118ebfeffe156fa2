/** Values as YSON text, for reading and for commands to copy. */

import type { Json } from '../api/client';

const BARE = /^[A-Za-z_][A-Za-z0-9_.%-]*$/;

const quoted = (text: string): string =>
  `"${text.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n').replace(/\t/g, '\\t')}"`;

const key = (text: string): string => (BARE.test(text) ? text : quoted(text));

/** On one line, as in `--spec '{...}'`. */
export function yson(value: Json): string {
  if (value === null) return '#';
  if (typeof value === 'boolean') return value ? '%true' : '%false';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(yson).join('; ')}]`;
  return `{${Object.entries(value)
    .map(([name, inner]) => `${key(name)}=${yson(inner)}`)
    .join('; ')}}`;
}

/** Over several lines. */
export function prettyYson(value: Json, indent = ''): string {
  const inside = `${indent}    `;
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[\n${value.map(item => `${inside}${prettyYson(item, inside)};\n`).join('')}${indent}]`;
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value);
    if (entries.length === 0) return '{}';
    return `{\n${entries.map(([name, item]) => `${inside}${key(name)} = ${prettyYson(item, inside)};\n`).join('')}${indent}}`;
  }
  return yson(value);
}
