/** A vanilla operation from a form: its specification, and how to start the same from elsewhere. */

import type { Json } from '../api/client';
import { isWrong, parseAmount } from './amounts';
import { prettyYson, yson } from './yson';

export interface SubmitForm {
  title: string;
  pool: string;
  task: string;
  command: string;
  jobs: string;
  cpu: string;
  memory: string;
  gpu: string;
  maxFailed: string;
  weight: string;
}

export const EMPTY: SubmitForm = {
  title: '',
  pool: '',
  task: 'task',
  command: '',
  jobs: '1',
  cpu: '1',
  memory: '512MiB',
  gpu: '',
  maxFailed: '',
  weight: '',
};

type Task = { [key: string]: Json };
export type Problems = Partial<Record<keyof SubmitForm, string>>;

/** Fields that are amounts, and of what. */
const AMOUNTS: [keyof SubmitForm, string][] = [
  ['jobs', 'user_slots'],
  ['cpu', 'cpu'],
  ['memory', 'memory'],
  ['gpu', 'gpu'],
  ['maxFailed', 'user_slots'],
  ['weight', 'cpu'],
];

export function problemsOf(form: SubmitForm): Problems {
  const problems: Problems = {};
  if (form.command.trim() === '') problems.command = 'A command is needed';
  if (form.task.trim() === '') problems.task = 'A task needs a name';
  for (const [field, kind] of AMOUNTS) {
    const value = parseAmount(kind, form[field]);
    if (isWrong(value)) problems[field] = value.wrong;
    else if (value !== undefined && value <= 0 && field !== 'gpu') problems[field] = 'More than zero';
  }
  if (form.jobs.trim() === '') problems.jobs = 'How many?';
  return problems;
}

const amount = (form: SubmitForm, field: keyof SubmitForm): number | undefined => {
  const kind = AMOUNTS.find(([name]) => name === field)?.[1] ?? 'cpu';
  const value = parseAmount(kind, form[field]);
  return isWrong(value) ? undefined : value;
};

const without = (map: Record<string, Json | undefined>): { [key: string]: Json } =>
  Object.fromEntries(
    Object.entries(map).filter((entry): entry is [string, Json] => entry[1] !== undefined && entry[1] !== ''),
  );

function taskOf(form: SubmitForm): Task {
  return without({
    command: form.command,
    job_count: amount(form, 'jobs') ?? 1,
    cpu_limit: amount(form, 'cpu'),
    memory_limit: amount(form, 'memory'),
    gpu_limit: amount(form, 'gpu'),
  });
}

const optionsOf = (form: SubmitForm): { [key: string]: Json } =>
  without({
    title: form.title.trim(),
    pool: form.pool.trim(),
    weight: amount(form, 'weight'),
    max_failed_job_count: amount(form, 'maxFailed'),
  });

export const specOf = (form: SubmitForm): Json => ({
  ...optionsOf(form),
  tasks: { [form.task.trim()]: taskOf(form) },
});

/** As one word of a shell. */
export const shellWord = (text: string): string =>
  /^[A-Za-z0-9_./:=@%+-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`;

export function millpondCommand(form: SubmitForm, proxy: string): string {
  const options = [
    ['--proxy', proxy],
    ['--pool', form.pool.trim()],
    ['--title', form.title.trim()],
    ['--name', form.task.trim()],
    ['--jobs', form.jobs.trim()],
    ['--cpu', form.cpu.trim()],
    ['--memory', form.memory.replace(/\s/g, '')],
    ['--gpu', form.gpu.trim()],
    ['--weight', form.weight.trim()],
    ['--max-failed', form.maxFailed.trim()],
  ].filter(([, value]) => value !== '');
  const words = options.map(([name, value]) => `${name} ${shellWord(value ?? '')}`);
  return `millpond run ${words.join(' ')} \\\n    -- bash -c ${shellWord(form.command)}`;
}

export function ytCommand(form: SubmitForm, proxy: string): string {
  const tasks: Json = { [form.task.trim()]: taskOf(form) };
  return `yt --proxy ${shellWord(proxy)} vanilla \\\n    --spec ${shellWord(yson(optionsOf(form)))} \\\n    --tasks ${shellWord(yson(tasks))}`;
}

export function pythonProgram(form: SubmitForm, proxy: string): string {
  const task = taskOf(form);
  const calls = [
    `.command(${python(form.command)})`,
    `.job_count(${python(task['job_count'] ?? 1)})`,
    ...(['cpu_limit', 'memory_limit', 'gpu_limit'] as const)
      .filter(name => task[name] !== undefined)
      .map(name => `.${name}(${python(task[name] ?? null)})`),
  ];
  return [
    'import yt.wrapper as yt',
    '',
    `yt.config["proxy"]["url"] = ${python(proxy)}`,
    `spec = yt.VanillaSpecBuilder().spec(${python(optionsOf(form))})`,
    `spec.begin_task(${python(form.task.trim())})${calls.join('')}.end_task()`,
    'operation = yt.run_operation(spec)',
    '',
  ].join('\n');
}

/** A literal of Python: JSON but for three words. */
function python(value: Json): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
  if (typeof value === 'object') {
    return `{${Object.entries(value)
      .map(([name, inner]) => `${JSON.stringify(name)}: ${python(inner)}`)
      .join(', ')}}`;
  }
  return JSON.stringify(value);
}

export const specText = (form: SubmitForm): string => prettyYson(specOf(form));
