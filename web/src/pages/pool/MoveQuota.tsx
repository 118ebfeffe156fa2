/** Gives a part of what a pool is promised to another pool, in one step for both and all between them. */

import { Select, TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import { useOnce } from '../../api/live';
import { transfer, treeSummary, type Delta } from '../../api/scheduling';
import { Loading } from '../../components/Async';
import { Confirm } from '../../components/Confirm';
import { isWrong, parseAmount } from '../../model/amounts';
import { pathOf, ROOT, type Pools } from '../../model/pools';
import { present, resourceTitle } from '../../model/resources';

const MAPS = [
  { field: 'strong_guarantee_resources', title: 'Strong guarantee' },
  { field: 'resource_flow', title: 'Flow' },
  { field: 'burst_guarantee_resources', title: 'Burst' },
] as const;
const COUNTS = [
  { field: 'max_running_operation_count', title: 'Running operations' },
  { field: 'max_operation_count', title: 'Operations' },
] as const;

interface Props {
  tree: string;
  from: string;
  pools: Pools;
  onClose: () => void;
}

export function MoveQuota({ tree, from, pools, onClose }: Props) {
  const summary = useOnce(['tree summary', tree], () => treeSummary(tree));
  const [to, setTo] = useState('');
  const [texts, setTexts] = useState<Record<string, string>>({});
  const resources = present(summary.data?.resource_limits);
  const delta = deltaOf(texts);
  const choices = Object.keys(pools)
    .filter(name => name !== ROOT && name !== from && pools[name]?.is_ephemeral !== true)
    .sort()
    .map(value => ({ value, content: pathOf(pools, value).join(' / ') }));
  const field = (key: string, kind: string, title: string, inside?: string) => {
    const value = parseAmount(kind, texts[key] ?? '');
    return (
      <TextInput
        key={key}
        {...(inside === undefined ? {} : { label: inside })}
        value={texts[key] ?? ''}
        onUpdate={text => setTexts(before => ({ ...before, [key]: text }))}
        validationState={isWrong(value) ? 'invalid' : undefined}
        errorMessage={isWrong(value) ? value.wrong : undefined}
        controlProps={{ 'aria-label': inside === undefined ? title : `${title}: ${inside}` }}
      />
    );
  };
  return (
    <Confirm
      title={`Move a part of what ${from} has`}
      verb="Move"
      size="m"
      disabled={to === '' || delta === undefined || Object.keys(delta).length === 0}
      act={() => transfer(tree, from, to, delta ?? {})}
      onClose={onClose}
    >
      {summary.data === undefined ? (
        <Loading />
      ) : (
        <div className="form">
          <span className="form__label">To</span>
          <Select
            value={to === '' ? [] : [to]}
            placeholder="choose a pool"
            options={choices}
            filterable
            width="max"
            aria-label="To"
            onUpdate={([chosen]) => setTo(chosen ?? '')}
          />
          {MAPS.map(({ field: map, title }) => (
            <Line key={map} title={title}>
              <div className="form__resources">
                {resources.map(resource =>
                  field(`${map}/${resource}`, resource, title, resourceTitle(resource)),
                )}
              </div>
            </Line>
          ))}
          {COUNTS.map(({ field: name, title }) => (
            <Line key={name} title={title}>
              {field(name, 'user_slots', title)}
            </Line>
          ))}
        </div>
      )}
    </Confirm>
  );
}

function Line({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <>
      <span className="form__label">{title}</span>
      <div>{children}</div>
    </>
  );
}

/** Nothing if some text is no amount. */
function deltaOf(texts: Record<string, string>): Delta | undefined {
  const delta: Record<string, number | Record<string, number>> = {};
  for (const [key, text] of Object.entries(texts)) {
    const [field = '', resource] = key.split('/');
    const value = parseAmount(resource ?? 'user_slots', text);
    if (isWrong(value)) return undefined;
    if (value === undefined) continue;
    if (resource === undefined) delta[field] = value;
    else delta[field] = { ...(delta[field] as Record<string, number> | undefined), [resource]: value };
  }
  return delta;
}
