/**
 * Commands of `/api/v4`, and the batching of questions.
 *
 * Everything goes by POST with parameters in the body: headers cannot carry text beyond Latin-1. Questions
 * that are asked in the same moment travel as one `execute_batch`, so a page costs one request per round.
 */

import { decodeError, Refusal, UNREACHABLE } from './errors';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Parameters = Record<string, unknown>;

/** JSON with strings as UTF-8, not as one character for each byte. */
const FORMAT = '{"$value":"json","$attributes":{"encode_utf8":false}}';

async function post(command: string, parameters: Parameters): Promise<unknown> {
  const response = await send(`/api/v4/${command}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-YT-Input-Format': FORMAT,
      'X-YT-Output-Format': FORMAT,
    },
    body: JSON.stringify(parameters),
  });
  return response.json();
}

let csrfToken = '';

/** What changes by cookie must say, so that no other site can do them (http-api.md 3). */
export const setCsrfToken = (token: string): void => {
  csrfToken = token;
};

const signedOut = new Set<() => void>();

/** Calls the listener when the server wants to know who asks; returns how to stop it. */
export function onSignedOut(listener: () => void): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

/** A request; an answer that is an error is thrown as a [`Refusal`]. */
export async function send(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  const headers = new Headers(init.headers);
  if (csrfToken !== '') headers.set('X-Csrf-Token', csrfToken);
  try {
    response = await fetch(url, { ...init, headers });
  } catch {
    throw new Refusal(decodeError({ code: UNREACHABLE, message: 'The server does not answer' }, ''));
  }
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => null);
  if (response.status === 401 && url.startsWith('/api/')) signedOut.forEach(listener => listener());
  throw new Refusal(
    decodeError(body, `The server answered ${response.status} ${response.statusText}`),
    response.status,
  );
}

interface Question {
  command: string;
  parameters: Parameters;
  resolve: (output: unknown) => void;
  reject: (error: unknown) => void;
}

let waiting: Question[] = [];

/** A question or a change without input; leaves with the others of this moment. */
export function call<T>(command: string, parameters: Parameters = {}): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    if (waiting.length === 0) queueMicrotask(flush);
    waiting.push({ command, parameters, resolve: resolve as (output: unknown) => void, reject });
  });
}

function flush(): void {
  const questions = waiting;
  waiting = [];
  void answer(questions);
}

async function answer(questions: Question[]): Promise<void> {
  const requests = questions.map(({ command, parameters }) => ({ command, parameters }));
  try {
    const results = await batch(requests);
    questions.forEach((question, index) => {
      const result = results[index];
      if (result === undefined || result.error !== undefined) {
        question.reject(new Refusal(decodeError(result?.error, 'The answer is incomplete')));
      } else {
        question.resolve(result.output);
      }
    });
  } catch (error) {
    for (const question of questions) question.reject(error);
  }
}

export interface Request {
  command: string;
  parameters: Parameters;
  input?: unknown;
}

interface Result {
  output?: unknown;
  error?: unknown;
}

/** Several commands in their order; a failing one does not stop those behind it. */
export async function batch(requests: Request[]): Promise<Result[]> {
  const reply = (await post('execute_batch', { requests })) as { results: Result[] };
  return reply.results;
}

/** One command with input, such as `set`. */
export async function callWithInput(command: string, parameters: Parameters, input: unknown): Promise<void> {
  const [result] = await batch([{ command, parameters, input }]);
  if (result?.error !== undefined) throw new Refusal(decodeError(result.error, 'The command was refused'));
}

/** Value at a path of the tree. */
export async function get<T>(path: string, parameters: Parameters = {}): Promise<T> {
  const reply = await call<{ value: T }>('get', { path, ...parameters });
  return reply.value;
}

/** The children at a path: all, or as many as `max_size` says. */
export interface Children<T> {
  names: T[];
  /** There are more. */
  incomplete: boolean;
}

type Cut<T> = { $value: T[]; $attributes?: { incomplete?: boolean } };

export async function listPart<T = string>(path: string, parameters: Parameters = {}): Promise<Children<T>> {
  const { value } = await call<{ value: T[] | Cut<T> }>('list', { path, ...parameters });
  if (Array.isArray(value)) return { names: value, incomplete: false };
  return { names: value.$value, incomplete: value.$attributes?.incomplete === true };
}

/** Names of the children at a path. */
export const list = async <T = string>(path: string, parameters: Parameters = {}): Promise<T[]> =>
  (await listPart<T>(path, parameters)).names;

/** The same, but nothing where nothing is. */
export async function getOr<T>(path: string, otherwise: T, parameters: Parameters = {}): Promise<T> {
  try {
    return await get<T>(path, parameters);
  } catch (error) {
    if (error instanceof Refusal && error.tree.code !== UNREACHABLE) return otherwise;
    throw error;
  }
}

/** Bytes as text, e.g. what a job has printed. */
export async function text(command: string, parameters: Record<string, string>): Promise<string> {
  const query = new URLSearchParams(parameters);
  const headers = { 'X-YT-Output-Format': FORMAT };
  const response = await send(`/api/v4/${command}?${query}`, { method: 'GET', headers });
  return response.text();
}

export interface Beginning {
  /** Nothing if it is not text. */
  text: string | undefined;
  /** Bytes that were read. */
  size: number;
  isAll: boolean;
}

/** The first bytes of what may be long. */
export async function beginning(url: string, most: number): Promise<Beginning> {
  const response = await send(url, { method: 'GET' });
  const reader = response.body?.getReader();
  const pieces: Uint8Array[] = [];
  let size = 0;
  let isAll = reader === undefined;
  while (reader !== undefined && size < most) {
    const { done, value } = await reader.read();
    if (done) {
      isAll = true;
      break;
    }
    pieces.push(value);
    size += value.length;
  }
  if (!isAll) await reader?.cancel();
  return { text: await textOf(pieces, isAll), size, isAll };
}

/** Of bytes that are cut anywhere the last character may be missing. */
async function textOf(pieces: Uint8Array[], isAll: boolean): Promise<string | undefined> {
  const bytes = await new Blob(pieces as BlobPart[]).arrayBuffer();
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: !isAll });
    // What no text has: binary YSON marks its strings and numbers so.
    return /[\u0000-\u0008]/.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** One of Millpond's own questions, which the `yt` client does not know. */
export async function question<T>(name: string, parameters: Record<string, string>): Promise<T> {
  const query = new URLSearchParams(parameters);
  const response = await send(`/api/millpond/${name}?${query}`, { method: 'GET' });
  return (await response.json()) as T;
}

/** Characters with a meaning in paths stand for themselves behind a backslash. */
export function escapePath(key: string): string {
  return key.replace(/[\\/@&[{*]/g, character => `\\${character}`);
}
