import { describe, expect, test } from 'vitest';
import { Refusal } from '../src/api/errors';
import { changeOf, fieldOfError, formOf, nameProblem, type Settings } from '../src/model/poolForm';

const RESOURCES = ['cpu', 'memory'];
const SETTINGS: Settings = {
  weight: 4,
  mode: 'fair_share',
  strong_guarantee_resources: { cpu: 10, memory: 17179869184, network: 3 },
  integral_guarantees: { guarantee_type: 'burst', resource_flow: { cpu: 2 }, can_accept_free_volume: true },
  name: 'production',
};

const changed = (changes: Record<string, string>, settings = SETTINGS) =>
  changeOf(settings, { ...formOf(settings, RESOURCES), ...changes }, RESOURCES);

describe('what is sent', () => {
  test('nothing for nothing', () => expect(changed({})).toEqual({ set: {}, unset: [], problems: {} }));

  test('only what changed', () =>
    expect(changed({ weight: '2.5' })).toEqual({ set: { weight: 2.5 }, unset: [], problems: {} }));

  test('an emptied field goes', () =>
    expect(changed({ weight: ' ', mode: '' }).unset).toEqual(['weight', 'mode']));

  test('maps keep what the form does not show', () => {
    expect(changed({ 'strong_guarantee_resources/cpu': '12' }).set).toEqual({
      strong_guarantee_resources: { cpu: 12, memory: 17179869184, network: 3 },
    });
    expect(changed({ 'integral_guarantees/resource_flow/cpu': '' }).set).toEqual({
      integral_guarantees: { guarantee_type: 'burst', can_accept_free_volume: true },
    });
  });

  test('a map without anything left goes', () =>
    expect(changed({ 'resource_limits/cpu': '' }, { resource_limits: { cpu: 4 } }).unset).toEqual([
      'resource_limits',
    ]));

  test('a map begins', () =>
    expect(
      changed(
        { 'resource_limits/memory': '2GiB', 'integral_guarantees/burst_guarantee_resources/cpu': '8' },
        {},
      ).set,
    ).toEqual({
      resource_limits: { memory: 2147483648 },
      integral_guarantees: { burst_guarantee_resources: { cpu: 8 } },
    }));

  test('flags and lists', () =>
    expect(
      changed({ forbid_immediate_operations: 'true', fifo_sort_parameters: 'weight, start_time' }).set,
    ).toEqual({
      forbid_immediate_operations: true,
      fifo_sort_parameters: ['weight', 'start_time'],
    }));

  test('what is no amount is said at its field', () => {
    const { problems } = changed({
      weight: 'much',
      'resource_limits/memory': '3 apples',
      max_operation_count: '1.5',
    });
    expect(Object.keys(problems).sort()).toEqual(['max_operation_count', 'resource_limits/memory', 'weight']);
  });

  test('the settings themselves stay as they are', () => {
    const before = structuredClone(SETTINGS);
    changed({ 'strong_guarantee_resources/cpu': '', 'integral_guarantees/guarantee_type': '' });
    expect(SETTINGS).toEqual(before);
  });
});

describe('errors of the server at their fields', () => {
  const refusal = (message: string, attributes: Record<string, unknown>) =>
    new Refusal({ code: 1, message, attributes, inner_errors: [] });
  test.each<[string, Record<string, unknown>, string | undefined]>([
    ['Bad value of the pool option "weight": expected a number', { option: 'weight' }, 'weight'],
    ['Unknown pool option "resource_limits/cpu"', { option: 'resource_limits/cpu' }, 'resource_limits/cpu'],
    [
      'Strong guarantee of resource for pool "p" is less than the sum',
      { resource_type: 'memory' },
      'strong_guarantee_resources/memory',
    ],
    [
      'Burst guarantees cannot be specified for integral guarantee type "relaxed"',
      {},
      'integral_guarantees/burst_guarantee_resources/cpu',
    ],
    [
      '"max_operation_count" must be greater than or equal to "max_running_operation_count"',
      {},
      'max_operation_count',
    ],
    ['Bad pool name "a b"', { pool: 'a b' }, 'name'],
    ['The server does not answer', {}, undefined],
  ])('%s', (message, attributes, field) =>
    expect(fieldOfError(refusal(message, attributes), RESOURCES)).toBe(field),
  );
});

test('names', () => {
  expect(nameProblem('a-b_C:9')).toBeUndefined();
  for (const name of ['', 'a b', 'ä', 'a/b', 'x'.repeat(101)]) expect(nameProblem(name)).toBeDefined();
});
