/**
 * The settings of a pool as a form: text fields by the path of their option, and back to the smallest change.
 * An emptied field takes its option away.
 */

import { errorAttribute, errorTree } from '../api/errors';
import { editedAmount, isWrong, parseAmount } from './amounts';

export type Settings = Record<string, unknown>;
/** Text by field, e.g. `weight`, `strong_guarantee_resources/cpu`. */
export type Form = Record<string, string>;
export type Problems = Record<string, string>;

/** Kinds of fields that are no resources. */
const KINDS = {
  weight: 'float',
  max_running_operation_count: 'count',
  max_operation_count: 'count',
  mode: 'name',
  forbid_immediate_operations: 'flag',
  create_ephemeral_subpools: 'flag',
  fifo_sort_parameters: 'list',
  'integral_guarantees/guarantee_type': 'name',
} as const;

const RESOURCE_MAPS = [
  'strong_guarantee_resources',
  'resource_limits',
  'integral_guarantees/resource_flow',
  'integral_guarantees/burst_guarantee_resources',
];

/** All fields of the form for a cluster with these resources. */
export const fields = (resources: readonly string[]): string[] => [
  ...Object.keys(KINDS),
  ...RESOURCE_MAPS.flatMap(map => resources.map(resource => `${map}/${resource}`)),
];

const lookUp = (settings: Settings, path: string): unknown =>
  path.split('/').reduce<unknown>((at, key) => (at as Settings | undefined)?.[key], settings);

export function formOf(settings: Settings, resources: readonly string[]): Form {
  return Object.fromEntries(fields(resources).map(field => [field, textOf(field, lookUp(settings, field))]));
}

function textOf(field: string, value: unknown): string {
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return value.join(', ');
  if (typeof value === 'number') return editedAmount(field.split('/').at(-1) ?? '', value);
  return String(value);
}

export interface Change {
  set: Settings;
  unset: string[];
  problems: Problems;
}

/** What has to be sent so that the settings become the form. */
export function changeOf(settings: Settings, form: Form, resources: readonly string[]): Change {
  const before = formOf(settings, resources);
  const change: Change = { set: {}, unset: [], problems: {} };
  const touched = new Set<string>();
  for (const field of fields(resources)) {
    if ((form[field] ?? '').trim() !== before[field]) touched.add(field.split('/')[0] ?? field);
  }
  for (const option of touched) {
    const value = valueOf(option, settings, form, resources, change.problems);
    if (value === undefined) change.unset.push(option);
    else change.set[option] = value;
  }
  return change;
}

/** A whole option: maps keep what the form does not show. */
function valueOf(
  option: string,
  settings: Settings,
  form: Form,
  resources: readonly string[],
  problems: Problems,
): unknown {
  const inside = fields(resources).filter(field => field.startsWith(`${option}/`));
  if (inside.length === 0) return parsed(option, form[option] ?? '', problems);
  const start = (settings[option] ?? {}) as Settings;
  return nonEmpty(
    inside.reduce(
      (map, field) => put(map, field.split('/').slice(1), parsed(field, form[field] ?? '', problems)),
      start,
    ),
  );
}

/** With a value set or removed in nested maps; maps that become empty go. */
function put(map: Settings, [key = '', ...rest]: string[], value: unknown): Settings {
  const inner = rest.length === 0 ? value : nonEmpty(put((map[key] ?? {}) as Settings, rest, value));
  const others = Object.fromEntries(Object.entries(map).filter(([name]) => name !== key));
  return inner === undefined ? others : { ...others, [key]: inner };
}

const nonEmpty = (map: Settings): Settings | undefined => (Object.keys(map).length === 0 ? undefined : map);

function parsed(field: string, typed: string, problems: Problems): unknown {
  const text = typed.trim();
  if (text === '') return undefined;
  const kind = KINDS[field as keyof typeof KINDS] as string | undefined;
  switch (kind) {
    case 'name':
      return text;
    case 'flag':
      return text === 'true';
    case 'list':
      return text.split(/[\s,;]+/).filter(name => name !== '');
    default: {
      const resource =
        kind === 'float' ? 'cpu' : kind === 'count' ? 'user_slots' : (field.split('/').at(-1) ?? '');
      const value = parseAmount(resource, text);
      if (!isWrong(value)) return value;
      problems[field] = value.wrong;
      return undefined;
    }
  }
}

/** The field that an error of the server is about, if it is about one. */
export function fieldOfError(error: unknown, resources: readonly string[]): string | undefined {
  const all = fields(resources);
  const message = errorTree(error).message;
  const option = errorAttribute(error, 'option');
  if (typeof option === 'string') {
    const exact = all.find(field => field === option);
    if (exact !== undefined) return exact;
    const inside = all.find(field => field.endsWith(`/${option}`) || field.startsWith(`${option}/`));
    if (inside !== undefined) return inside;
  }
  const resource = errorAttribute(error, 'resource_type') ?? 'cpu';
  const byMessage: [RegExp, string][] = [
    [/flow/i, `integral_guarantees/resource_flow/${String(resource)}`],
    [/burst/i, `integral_guarantees/burst_guarantee_resources/${String(resource)}`],
    [/strong guarantee|main resource/i, `strong_guarantee_resources/${String(resource)}`],
    [/guarantee type|integral/i, 'integral_guarantees/guarantee_type'],
    [/max_operation_count/, 'max_operation_count'],
    [/weight/, 'weight'],
    [/fifo|mode/i, 'mode'],
    [/name/i, 'name'],
  ];
  const field = byMessage.find(([pattern]) => pattern.test(message))?.[1];
  return field !== undefined && (field === 'name' || all.includes(field)) ? field : undefined;
}

/** As the server wants it (http-api.md 8.8). */
export function nameProblem(name: string): string | undefined {
  if (name === '') return 'A pool needs a name';
  if (name.length > 100) return 'At most 100 characters';
  return /^[-_a-zA-Z0-9:]+$/.test(name) ? undefined : 'Letters, digits, "-", "_" and ":" only';
}
