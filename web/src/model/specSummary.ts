/** The parts of a specification that say what an operation does: commands, files, layers, tables. */

import type { Json } from '../api/client';

export interface Script {
  /** Of the task, or what the command is for: `mapper`. */
  name: string;
  command: string;
  files: PathOf[];
  layers: PathOf[];
  environment: [string, string][];
}

export interface PathOf {
  /** Without attributes, columns and ranges: it can be looked at in the tree. */
  path: string;
  /** Under which name jobs find it, if that is another one than its own. */
  name: string | undefined;
}

export interface SpecSummary {
  /** What people wrote for people. */
  description: Json | undefined;
  inputs: PathOf[];
  outputs: PathOf[];
  scripts: Script[];
}

type JsonMap = { [key: string]: Json };

const isMap = (value: Json | undefined): value is JsonMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A value without the attributes that it was given. */
const bare = (value: Json | undefined): Json | undefined =>
  isMap(value) && '$value' in value ? value['$value'] : value;

const listOf = (value: Json | undefined): Json[] => {
  const plain = bare(value);
  return Array.isArray(plain) ? plain : plain === undefined || plain === null ? [] : [plain];
};

export function pathOfValue(value: Json): PathOf | undefined {
  const text = bare(value);
  if (typeof text !== 'string') return undefined;
  // What stands in front of the path are attributes; columns and ranges follow it.
  const path = /\/\/(?:\\.|[^[{\\])*/.exec(text)?.[0] ?? text;
  const attributes = isMap(value) ? value['$attributes'] : undefined;
  const name = isMap(attributes) ? attributes['file_name'] : undefined;
  return { path, name: typeof name === 'string' ? name : undefined };
}

const pathsOf = (value: Json | undefined): PathOf[] =>
  listOf(value)
    .map(pathOfValue)
    .filter(path => path !== undefined);

/** How many paths there are: short forms keep the first, and the number of all in an attribute. */
export function pathCount(value: Json | undefined): number {
  const attributes = isMap(value) ? value['$attributes'] : undefined;
  const count = isMap(attributes) ? attributes['count'] : undefined;
  return typeof count === 'number' ? count : pathsOf(value).length;
}

export const firstPath = (value: Json | undefined): string | undefined => pathsOf(value)[0]?.path;

const COMMANDS = ['mapper', 'reducer', 'reduce_combiner'];

export function specSummary(spec: Json): SpecSummary {
  const root = isMap(spec) ? spec : {};
  const tasks = isMap(root['tasks']) ? Object.entries(root['tasks']) : [];
  const commands = COMMANDS.map((name): [string, Json | undefined] => [name, root[name]]);
  const scripts = [...tasks, ...commands].filter((one): one is [string, JsonMap] => isMap(one[1]));
  return {
    description: root['description'] ?? undefined,
    inputs: [...pathsOf(root['input_table_paths']), ...pathsOf(root['input_table_path'])],
    outputs: [
      ...pathsOf(root['output_table_paths']),
      ...pathsOf(root['output_table_path']),
      ...scripts.flatMap(([, script]) => pathsOf(script['output_table_paths'])),
    ],
    scripts: scripts.map(([name, script]) => scriptOf(name, script)),
  };
}

function scriptOf(name: string, script: JsonMap): Script {
  const environment = isMap(script['environment']) ? Object.entries(script['environment']) : [];
  const command = bare(script['command']);
  return {
    name,
    command: typeof command === 'string' ? command : '',
    files: pathsOf(script['file_paths']),
    layers: pathsOf(script['layer_paths']),
    environment: environment.map(([key, value]) => [key, String(bare(value))]),
  };
}
