/** The log of preemptions: who took whose resources, at which stage. */

import { Select, TextInput } from '@gravity-ui/uikit';
import { useLive } from '../../api/live';
import { preemptions, type Preemption } from '../../api/operations';
import { trees as askTrees } from '../../api/scheduling';
import { Async } from '../../components/Async';
import { PreemptionTable } from '../../components/PreemptionTable';
import { useTitle } from '../../components/Parts';
import { count, plural, words } from '../../model/format';
import { useUrlState } from '../../model/urlState';

export function Preemptions() {
  useTitle('Preemptions');
  const [url, change] = useUrlState();
  const trees = useLive('pools', ['trees'], askTrees);
  const tree = url.get('tree') ?? trees.data?.default;
  const log = useLive('preemptions', ['preemptions', tree], () => preemptions(tree ?? ''), {
    enabled: tree !== undefined,
  });
  const text = url.get('filter') ?? '';
  const stage = url.get('stage');
  const found = (log.data ?? []).filter(p => matches(p, text.trim().toLowerCase(), stage));
  return (
    <>
      <div className="page__head">
        <h1 className="page__title">Preemptions</h1>
        {log.data !== undefined && (
          <span className="secondary">
            {plural(log.data.length, 'entry').replace('entrys', 'entries')} are kept
          </span>
        )}
      </div>
      <div className="toolbar">
        <TextInput
          className="toolbar__filter"
          value={text}
          onUpdate={filter => change({ filter })}
          placeholder="Pool, operation, node"
          hasClear
          controlProps={{ 'aria-label': 'Filter preemptions' }}
        />
        <Select
          aria-label="Stage"
          label="Stage:"
          value={stage === null ? [] : [stage]}
          placeholder="all"
          hasClear
          options={stagesOf(log.data ?? []).map(([name, n]) => ({
            value: name,
            content: `${words(name)} (${count(n)})`,
          }))}
          onUpdate={([chosen]) => change({ stage: chosen })}
        />
        {trees.data !== undefined && trees.data.names.length > 1 && (
          <Select
            aria-label="Tree"
            label="Tree:"
            value={tree === undefined ? [] : [tree]}
            options={trees.data.names.map(name => ({ value: name, content: name }))}
            onUpdate={([chosen]) => change({ tree: chosen })}
          />
        )}
      </div>
      {tree === undefined && <Async query={trees}>{() => null}</Async>}
      {tree !== undefined && (
        <Async query={log}>
          {all => (
            <PreemptionTable
              rows={found}
              empty={
                all.length === 0
                  ? 'Nobody has been preempted: everybody waits for free resources or has them.'
                  : 'No preemption is as you look for.'
              }
            />
          )}
        </Async>
      )}
    </>
  );
}

const stageOf = (p: Preemption): string => p.stage ?? p.preemption_kind;

function stagesOf(log: Preemption[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const p of log) counts.set(stageOf(p), (counts.get(stageOf(p)) ?? 0) + 1);
  return [...counts].sort();
}

function matches(p: Preemption, text: string, stage: string | null): boolean {
  if (stage !== null && stageOf(p) !== stage) return false;
  return [p.pool, p.node, p.operation_id, p.preempted_for?.operation_id ?? '', p.job_id ?? ''].some(field =>
    field.toLowerCase().includes(text),
  );
}
