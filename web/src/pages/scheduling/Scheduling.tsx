/** The pools of a tree: who is entitled to what, wants what, uses what. */

import { ChevronsCollapseVertical, ChevronsExpandVertical, Gear, Magnifier, Plus } from '@gravity-ui/icons';
import { Button, Icon, SegmentedRadioGroup, Select, TextInput } from '@gravity-ui/uikit';
import { useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import { useLive } from '../../api/live';
import {
  operationsByPool,
  poolPath,
  pools as askPools,
  trees as askTrees,
  treeSummary,
} from '../../api/scheduling';
import { Allowed } from '../../api/session-context';
import { Async } from '../../components/Async';
import { ShareLegend } from '../../components/Bar';
import { useTitle } from '../../components/Parts';
import { fieldsOf, OPERATION_FIELDS } from '../../model/columns';
import { childrenOf, openAtFirst, opensWithAll, ROOT, type Pools } from '../../model/pools';
import { links } from '../../model/links';
import { shareEntries } from '../../model/sharing';
import { printSort, useSort, useUrlState } from '../../model/urlState';
import { PoolEditor } from '../pool/PoolEditor';
import { Alerts } from './Alerts';
import { ColumnChoice, useColumnSet } from './ColumnChoice';
import { Overview } from './Overview';
import { PoolTable } from './PoolTable';
import { TreeConfig } from './TreeConfig';

const NOTHING = {};

export function Scheduling() {
  useTitle('Scheduling');
  const [url, change] = useUrlState();
  const [, navigate] = useLocation();
  const [creating, setCreating] = useState(false);
  const [configuring, setConfiguring] = useState(false);
  const trees = useLive('pools', ['trees'], askTrees);
  const tree = url.get('tree') ?? trees.data?.default;
  const set = useColumnSet();
  const fields = fieldsOf(set);
  const absolute =
    url.get('values') === 'amounts' || (url.get('values') === null && set.resource !== undefined);

  const summary = useLive(['pools', 'nodes'], ['summary', tree], () => treeSummary(tree ?? ''), {
    enabled: tree !== undefined,
  });
  const pools = useLive('pools', ['pools', tree, fields.join()], () => askPools(tree ?? '', fields), {
    enabled: tree !== undefined,
    share: shareEntries,
  });
  const total = summary.data?.resource_limits ?? NOTHING;
  const context = useMemo(() => ({ total, absolute }), [total, absolute]);
  const sort = useSort(url);
  const expansion = useExpansion(pools.data);
  const open = expansion.open.filter(name => (pools.data?.[name]?.pool_operation_count ?? 0) > 0);
  const operations = useLive(
    ['pools', 'operations'],
    ['operations by pool', tree, fields.join(), open],
    () => operationsByPool(tree ?? '', open, [...fields, ...OPERATION_FIELDS]),
    { enabled: tree !== undefined && open.length > 0 },
  );

  return (
    <>
      <Alerts />
      <div className="page__head">
        <h1 className="page__title">Scheduling</h1>
        {trees.data !== undefined && trees.data.names.length > 1 && (
          <Select
            aria-label="Tree"
            label="Tree:"
            value={tree === undefined ? [] : [tree]}
            options={trees.data.names.map(name => ({ value: name, content: name }))}
            onUpdate={([chosen]) =>
              change({ tree: chosen === trees.data.default ? undefined : chosen }, true)
            }
          />
        )}
        <div className="page__actions">
          <Allowed to="administer" at={tree === undefined ? undefined : poolPath(tree, [])}>
            <Button view="outlined" onClick={() => setConfiguring(true)}>
              <Icon data={Gear} />
              Tree config
            </Button>
          </Allowed>
          <Allowed to="write" at={tree === undefined ? undefined : poolPath(tree, [])}>
            <Button view="action" onClick={() => setCreating(true)} disabled={tree === undefined}>
              <Icon data={Plus} />
              Create pool
            </Button>
          </Allowed>
        </div>
      </div>
      {tree !== undefined && summary.data !== undefined && pools.data !== undefined && (
        <Overview tree={tree} summary={summary.data} root={pools.data[ROOT]} />
      )}
      <div className="toolbar">
        <TextInput
          className="toolbar__filter"
          value={url.get('filter') ?? ''}
          onUpdate={filter => change({ filter })}
          placeholder="Filter pools by name"
          hasClear
          controlProps={{ 'aria-label': 'Filter pools by name' }}
          startContent={<Icon data={Magnifier} size={14} className="find-icon" />}
        />
        <ColumnChoice set={set} total={summary.data?.resource_limits} />
        {set.id !== 'operations' && (
          <SegmentedRadioGroup
            aria-label="How amounts are shown"
            value={absolute ? 'amounts' : 'shares'}
            onUpdate={values => change({ values })}
          >
            <SegmentedRadioGroup.Option value="shares">%</SegmentedRadioGroup.Option>
            <SegmentedRadioGroup.Option value="amounts">Amounts</SegmentedRadioGroup.Option>
          </SegmentedRadioGroup>
        )}
        <Button view="flat" title="Open all pools" aria-label="Open all pools" onClick={expansion.expandAll}>
          <Icon data={ChevronsExpandVertical} />
        </Button>
        <Button
          view="flat"
          title="Close all pools"
          aria-label="Close all pools"
          onClick={expansion.collapseAll}
        >
          <Icon data={ChevronsCollapseVertical} />
        </Button>
        <div className="toolbar__space" />
        <ShareLegend />
      </div>
      {tree === undefined && <Async query={trees}>{() => null}</Async>}
      {tree !== undefined && (
        <Async query={pools}>
          {all => (
            <PoolTable
              tree={tree ?? ''}
              pools={all}
              operations={operations.data ?? NOTHING}
              set={set}
              context={context}
              under={ROOT}
              filter={url.get('filter') ?? ''}
              sort={sort}
              onSort={sort => change({ sort: sort === undefined ? undefined : printSort(sort) })}
              isExpanded={expansion.isExpanded}
              onToggle={expansion.toggle}
              empty={
                <>
                  There are no pools yet.
                  <Allowed to="write" at={tree === undefined ? undefined : poolPath(tree, [])}>
                    <Button view="outlined" onClick={() => setCreating(true)}>
                      Create one
                    </Button>
                  </Allowed>
                </>
              }
            />
          )}
        </Async>
      )}
      {configuring && tree !== undefined && <TreeConfig tree={tree} onClose={() => setConfiguring(false)} />}
      {creating && tree !== undefined && (
        <PoolEditor
          tree={tree}
          onClose={() => setCreating(false)}
          onDone={(name, of) => {
            setCreating(false);
            navigate(links.pool(of, name));
          }}
        />
      )}
    </>
  );
}

/**
 * Which pools are open. The address has those that differ from what is open at first, so a link stays short
 * and a new pool behaves like the others.
 */
function useExpansion(pools: Pools | undefined) {
  const [url, change] = useUrlState();
  const text = url.get('open');
  return useMemo(() => {
    const children = childrenOf(pools ?? {});
    const toggled = new Set((text ?? '').split(',').filter(name => name !== ''));
    const atFirst = (name: string) => pools !== undefined && openAtFirst(pools, children, name);
    const isExpanded = (name: string) => atFirst(name) !== toggled.has(name);
    const names = Object.keys(pools ?? {}).filter(name => name !== ROOT);
    const save = (set: Iterable<string>) => change({ open: [...set].sort().join(',') });
    return {
      isExpanded,
      open: names.filter(isExpanded),
      toggle: (name: string) => {
        const next = new Set(toggled);
        if (!next.delete(name)) next.add(name);
        save(next);
      },
      expandAll: () => {
        const all = new Set(opensWithAll(pools ?? {}));
        save(names.filter(name => all.has(name) !== atFirst(name)));
      },
      collapseAll: () => save(names.filter(atFirst)),
    };
  }, [pools, text, change]);
}
