import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { batch, call, callWithInput, escapePath, get, getOr, list } from '../src/api/client';
import { containsCode, decodeError, errorAttribute, innermost, Refusal } from '../src/api/errors';
import { children } from '../src/api/tree';

interface Sent {
  url: string;
  headers: Headers;
  body: { requests: { command: string; parameters: Record<string, unknown>; input?: unknown }[] };
}

let sent: Sent[] = [];
let reply: (body: Sent['body']) => unknown = () => ({});

beforeEach(() => {
  sent = [];
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    const body = JSON.parse(String(init.body)) as Sent['body'];
    sent.push({ url, headers: new Headers(init.headers), body });
    const answer = reply(body);
    if (answer instanceof Response) return answer;
    return new Response(JSON.stringify(answer), { status: 200 });
  });
});
afterEach(() => vi.unstubAllGlobals());

const outputs = (...of: unknown[]) => ({ results: of.map(output => ({ output })) });

describe('questions of one moment', () => {
  test('travel together and come back in their order', async () => {
    reply = () => outputs({ value: 1 }, { value: 'two' });
    const answers = await Promise.all([get('//a'), get('//b', { fields: ['x'] })]);
    expect(answers).toEqual([1, 'two']);
    expect(sent).toHaveLength(1);
    expect(sent[0]?.url).toBe('/api/v4/execute_batch');
    expect(sent[0]?.body.requests).toEqual([
      { command: 'get', parameters: { path: '//a' } },
      { command: 'get', parameters: { path: '//b', fields: ['x'] } },
    ]);
  });

  test('a list of which there is more comes as far as it goes, and says so', async () => {
    reply = () =>
      outputs({ value: ['a', 'b'] }, { value: { $value: ['a'], $attributes: { incomplete: true } } });
    expect(await Promise.all([list('//a'), list('//b', { max_size: 1 })])).toEqual([['a', 'b'], ['a']]);
    const one = { $value: 'a', $attributes: { type: 'table' } };
    reply = () =>
      outputs({ value: { $value: [one, 'b'], $attributes: { incomplete: true } } }, { value: [one] });
    const shown = [{ name: 'a', type: 'table' }];
    expect(await Promise.all([children('//a'), children('//b')])).toEqual([
      { shown: [...shown, { name: 'b', type: '' }], incomplete: true },
      { shown, incomplete: false },
    ]);
  });

  test('text is UTF-8 both ways', async () => {
    reply = () => outputs({});
    await call('start_operation', { spec: { title: 'α…ω' } });
    expect(sent[0]?.headers.get('X-YT-Output-Format')).toContain('"encode_utf8":false');
    expect(sent[0]?.headers.get('X-YT-Input-Format')).toContain('"encode_utf8":false');
    expect(sent[0]?.body.requests[0]?.parameters).toEqual({ spec: { title: 'α…ω' } });
  });

  test('one that fails does not take the others along', async () => {
    reply = () => ({
      results: [
        { error: { code: 500, message: 'no such pool', attributes: {}, inner_errors: [] } },
        { output: { value: 2 } },
      ],
    });
    const [bad, good] = await Promise.allSettled([get('//bad'), get('//good')]);
    expect(good).toEqual({ status: 'fulfilled', value: 2 });
    expect(bad.status).toBe('rejected');
    expect(containsCode((bad as PromiseRejectedResult).reason, 500)).toBe(true);
  });

  test('a refusal of the batch is everybody’s', async () => {
    reply = () => new Response(JSON.stringify({ code: 901, message: 'Access denied' }), { status: 400 });
    const all = await Promise.allSettled([get('//a'), get('//b')]);
    expect(
      all.map(result => (result as PromiseRejectedResult).reason as Refusal).map(error => error.tree.code),
    ).toEqual([901, 901]);
  });
});

test('a server that is away has code 0, and no default hides it', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('network')));
  await expect(getOr('//a', 'default')).rejects.toMatchObject({ tree: { code: 0 } });
});

test('a default stands for what is not there', async () => {
  reply = () => ({ results: [{ error: { code: 500, message: 'no', attributes: {}, inner_errors: [] } }] });
  expect(await getOr('//a', 'default')).toBe('default');
});

test('input goes beside the parameters', async () => {
  reply = () => outputs({});
  await callWithInput('set', { path: '//a/@x' }, { deep: [1] });
  expect(sent[0]?.body.requests).toEqual([
    { command: 'set', parameters: { path: '//a/@x' }, input: { deep: [1] } },
  ]);
  reply = () => ({ results: [{ error: { code: 1, message: 'bad', attributes: { option: 'x' } } }] });
  await expect(callWithInput('set', { path: '//a/@x' }, 1)).rejects.toThrow('bad');
});

test('a proxy’s page of HTML becomes an error too', async () => {
  reply = () => new Response('<html>Bad gateway</html>', { status: 502, statusText: 'Bad Gateway' });
  await expect(batch([])).rejects.toMatchObject({
    tree: { code: 1, message: 'The server answered 502 Bad Gateway' },
  });
});

describe('error trees', () => {
  const tree = decodeError(
    {
      code: 215,
      message: 'Failed jobs limit exceeded',
      inner_errors: [
        {
          code: 1205,
          message: 'User job failed',
          attributes: { job_id: 'j' },
          inner_errors: [{ code: 10000, message: 'Exit 3' }],
        },
      ],
    },
    '',
  );
  const error = new Refusal(tree);

  test('missing parts are filled in', () =>
    expect(tree.inner_errors[0]?.inner_errors[0]).toEqual({
      code: 10000,
      message: 'Exit 3',
      attributes: {},
      inner_errors: [],
    }));
  test('codes and attributes are found at any depth', () => {
    expect(containsCode(error, 10000)).toBe(true);
    expect(containsCode(error, 500)).toBe(false);
    expect(errorAttribute(error, 'job_id')).toBe('j');
    expect(errorAttribute(error, 'nothing')).toBeUndefined();
  });
  test('the innermost says most', () => expect(innermost(tree)).toBe('Exit 3'));
  test('anything is an error', () => expect(decodeError('<html>', 'no answer').message).toBe('no answer'));
});

test('characters of paths', () =>
  expect(escapePath('a/b@c[d]{e}*f\\g')).toBe('a\\/b\\@c\\[d]\\{e}\\*f\\\\g'));
