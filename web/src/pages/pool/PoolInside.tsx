/** The pools and operations in a pool, as a table. */

import { Button, SegmentedRadioGroup, Select, TextInput } from '@gravity-ui/uikit';
import { useMemo, useState } from 'react';
import { useLive } from '../../api/live';
import { operationsByPool, pools as askPools } from '../../api/scheduling';
import { Async } from '../../components/Async';
import { columnSet, columnSets, fieldsOf, OPERATION_FIELDS } from '../../model/columns';
import type { Resources } from '../../model/resources';
import { shareEntries } from '../../model/sharing';
import { printSort, useSort, useUrlState } from '../../model/urlState';
import { PoolTable } from '../scheduling/PoolTable';

export function PoolInside({ tree, name, total }: { tree: string; name: string; total: Resources }) {
  const [url, change] = useUrlState();
  const sort = useSort(url);
  const [open, setOpen] = useState<readonly string[]>([]);
  const set = columnSet(url.get('set') ?? undefined);
  const absolute =
    url.get('values') === 'amounts' || (url.get('values') === null && set.resource !== undefined);
  const context = useMemo(() => ({ total, absolute }), [total, absolute]);
  const pools = useLive('pools', ['pools', tree, set.id], () => askPools(tree, fieldsOf(set)), {
    share: shareEntries,
  });
  const asked = [name, ...open];
  const operations = useLive(['pools', 'operations'], ['operations by pool', tree, set.id, asked], () =>
    operationsByPool(tree, asked, [...fieldsOf(set), ...OPERATION_FIELDS]),
  );
  return (
    <>
      <div className="toolbar">
        <TextInput
          className="toolbar__filter"
          value={url.get('filter') ?? ''}
          onUpdate={filter => change({ filter })}
          placeholder="Filter pools by name"
          hasClear
          controlProps={{ 'aria-label': 'Filter pools by name' }}
        />
        <Select
          aria-label="Columns"
          value={[set.id]}
          options={columnSets(total).map(s => ({ value: s.id, content: s.title }))}
          onUpdate={([chosen]) =>
            change({ set: chosen === 'summary' ? undefined : chosen, sort: undefined, values: undefined })
          }
          label="Columns:"
        />
        <SegmentedRadioGroup
          aria-label="How amounts are shown"
          value={absolute ? 'amounts' : 'shares'}
          onUpdate={values => change({ values })}
        >
          <SegmentedRadioGroup.Option value="shares">%</SegmentedRadioGroup.Option>
          <SegmentedRadioGroup.Option value="amounts">Amounts</SegmentedRadioGroup.Option>
        </SegmentedRadioGroup>
        <Button view="flat" onClick={() => setOpen([])} disabled={open.length === 0}>
          Close all
        </Button>
      </div>
      <Async query={pools}>
        {all => (
          <PoolTable
            tree={tree}
            pools={all}
            operations={operations.data ?? {}}
            set={set}
            context={context}
            under={name}
            filter={url.get('filter') ?? ''}
            sort={sort}
            onSort={sort => change({ sort: sort === undefined ? undefined : printSort(sort) })}
            isExpanded={pool => open.includes(pool)}
            onToggle={pool =>
              setOpen(open.includes(pool) ? open.filter(other => other !== pool) : [...open, pool])
            }
            empty="Nothing is in this pool at the moment."
          />
        )}
      </Async>
    </>
  );
}
