/** Pool, weight and resource limits of a running operation, tree by tree. */

import { Select, TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import { updateParameters, type OperationSummary, type TreeOptions } from '../../api/operations';
import { pools as askPools, treeSummary } from '../../api/scheduling';
import { useOnce } from '../../api/live';
import { Loading } from '../../components/Async';
import { Confirm } from '../../components/Confirm';
import { editedAmount, isWrong, parseAmount } from '../../model/amounts';
import { pathOf, ROOT, type Pools } from '../../model/pools';
import { present, resourceTitle, type Resource } from '../../model/resources';

type Texts = Record<string, string>;

export function ParametersEditor({
  operation,
  onClose,
}: {
  operation: OperationSummary;
  onClose: () => void;
}) {
  const options = operation.runtime_parameters?.scheduling_options_per_pool_tree ?? {};
  const names = Object.keys(options);
  const [tree, setTree] = useState(names[0] ?? '');
  const [opened] = useState(() => Date.now());
  const around = useOnce(['trees of the operation', tree, opened], async () => {
    const [pools, summary] = await Promise.all([askPools(tree, ['parent', 'mode']), treeSummary(tree)]);
    return { pools, resources: present(summary.resource_limits) };
  });
  const [texts, setTexts] = useState<Record<string, Texts>>({});
  const before = textsOf(options[tree] ?? {});
  const now = { ...before, ...texts[tree] };
  const put = (field: string) => (text: string) =>
    setTexts(all => ({ ...all, [tree]: { ...all[tree], [field]: text } }));
  const changed = Object.fromEntries(
    Object.entries(texts).map(([name, fields]) => [
      name,
      changeOf(options[name] ?? {}, { ...textsOf(options[name] ?? {}), ...fields }),
    ]),
  );
  const wrong = Object.values(changed).some(change => change === undefined);
  const nothing = Object.values(changed).every(
    change => change !== undefined && Object.keys(change).length === 0,
  );
  return (
    <Confirm
      title="Pool, weight and limits"
      verb="Save"
      size="m"
      disabled={wrong || nothing}
      act={() => updateParameters(operation.id, changed as Record<string, TreeOptions>)}
      onClose={onClose}
    >
      {around.data === undefined ? (
        <Loading />
      ) : (
        <div className="form">
          {names.length > 1 && (
            <>
              <span className="form__label">Tree</span>
              <Select
                value={[tree]}
                options={names.map(name => ({ value: name, content: name }))}
                width="max"
                aria-label="Tree"
                onUpdate={([name]) => setTree(name ?? '')}
              />
            </>
          )}
          <span className="form__label">Pool</span>
          <Select
            value={[now['pool'] ?? '']}
            options={choices(around.data.pools)}
            filterable
            width="max"
            aria-label="Pool"
            onUpdate={([name]) => put('pool')(name ?? '')}
          />
          <label htmlFor="operation-weight">Weight</label>
          <Field id="operation-weight" kind="cpu" value={now['weight'] ?? ''} onUpdate={put('weight')} />
          <span className="form__label">Limits: all jobs together</span>
          <div className="form__resources">
            {around.data.resources.map(resource => (
              <Field
                key={resource}
                id={`limit-${resource}`}
                kind={resource}
                inside={resourceTitle(resource)}
                value={now[resource] ?? ''}
                onUpdate={put(resource)}
              />
            ))}
          </div>
        </div>
      )}
    </Confirm>
  );
}

function Field({
  id,
  kind,
  inside,
  value,
  onUpdate,
}: {
  id: string;
  kind: Resource;
  inside?: string;
  value: string;
  onUpdate: (text: string) => void;
}) {
  const parsed = parseAmount(kind, value);
  const problem = isWrong(parsed) ? parsed.wrong : undefined;
  return (
    <TextInput
      id={id}
      {...(inside === undefined ? {} : { label: inside })}
      value={value}
      onUpdate={onUpdate}
      validationState={problem === undefined ? undefined : 'invalid'}
      errorMessage={problem}
      controlProps={{ 'aria-label': inside ?? 'Weight' }}
    />
  );
}

const choices = (pools: Pools) =>
  Object.keys(pools)
    .filter(name => name !== ROOT)
    .sort()
    .map(value => ({ value, content: pathOf(pools, value).join(' / ') }));

function textsOf(options: TreeOptions): Texts {
  const limits = Object.entries(options.resource_limits ?? {}).map(([resource, value]) => [
    resource,
    editedAmount(resource, value),
  ]);
  return {
    pool: options.pool ?? '',
    weight: editedAmount('cpu', options.weight),
    ...Object.fromEntries(limits),
  };
}

/** Only what differs; nothing if a text is no amount. */
function changeOf(options: TreeOptions, texts: Texts): TreeOptions | undefined {
  const before = textsOf(options);
  const change: TreeOptions = {};
  const limits: Record<string, number> = {};
  let limitsChanged = false;
  for (const [field, text] of Object.entries(texts)) {
    if (field === 'pool') {
      if (text !== before['pool']) change.pool = text;
      continue;
    }
    const value = parseAmount(field === 'weight' ? 'cpu' : field, text);
    if (isWrong(value)) return undefined;
    const differs = text !== (before[field] ?? '');
    if (field === 'weight') {
      if (differs && value !== undefined) change.weight = value;
      continue;
    }
    if (value !== undefined) limits[field] = value;
    limitsChanged ||= differs;
  }
  return limitsChanged ? { ...change, resource_limits: limits } : change;
}
