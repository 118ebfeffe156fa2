/** What the jobs of an operation used, summed up by state and task. */

import { Select, TextInput } from '@gravity-ui/uikit';
import { useMemo } from 'react';
import type { StatisticsTree, TaggedSummary } from '../../api/operations';
import { StatisticsTable } from '../../components/StatisticsTable';
import { statisticsRows } from '../../model/statistics';
import { useUrlState } from '../../model/urlState';

export function Statistics({ tree }: { tree: StatisticsTree }) {
  const [url, change] = useUrlState();
  const state = url.get('state') ?? undefined;
  const task = url.get('task') ?? undefined;
  const name = url.get('name') ?? '';
  const tags = useMemo(() => tagsOf(tree), [tree]);
  const poolTree = url.get('tree') ?? undefined;
  const rows = useMemo(
    () => statisticsRows(tree, { state, task, tree: poolTree, name }),
    [tree, state, task, poolTree, name],
  );
  return (
    <>
      <div className="toolbar">
        <TextInput
          className="toolbar__filter"
          value={name}
          onUpdate={text => change({ name: text })}
          placeholder="Filter by name"
          hasClear
          controlProps={{ 'aria-label': 'Filter statistics by name' }}
        />
        <Tag
          label="State of jobs:"
          value={state}
          choices={tags.states}
          onUpdate={chosen => change({ state: chosen })}
        />
        <Tag label="Task:" value={task} choices={tags.tasks} onUpdate={chosen => change({ task: chosen })} />
        {(tags.trees.length > 1 || poolTree !== undefined) && (
          <Tag
            label="Tree:"
            value={poolTree}
            choices={tags.trees}
            onUpdate={chosen => change({ tree: chosen })}
          />
        )}
      </div>
      <StatisticsTable rows={rows} />
    </>
  );
}

function Tag({
  label,
  value,
  choices,
  onUpdate,
}: {
  label: string;
  value: string | undefined;
  choices: string[];
  onUpdate: (value: string | undefined) => void;
}) {
  return (
    <Select
      aria-label={label.replace(':', '')}
      label={label}
      value={value === undefined ? [] : [value]}
      placeholder="all"
      hasClear
      options={choices.map(choice => ({ value: choice, content: choice }))}
      onUpdate={([chosen]) => onUpdate(chosen)}
    />
  );
}

interface Tags {
  states: string[];
  tasks: string[];
  trees: string[];
}

function tagsOf(tree: StatisticsTree): Tags {
  const trees = new Set<string>();
  const states = new Set<string>();
  const tasks = new Set<string>();
  const walk = (node: StatisticsTree | TaggedSummary[]) => {
    if (!Array.isArray(node)) return Object.values(node).forEach(walk);
    for (const { tags } of node) {
      if (tags.job_state !== undefined) states.add(tags.job_state);
      if (tags.job_type !== undefined) tasks.add(tags.job_type);
      if (tags.pool_tree !== undefined) trees.add(tags.pool_tree);
    }
  };
  walk(tree);
  return { states: [...states].sort(), tasks: [...tasks].sort(), trees: [...trees].sort() };
}
