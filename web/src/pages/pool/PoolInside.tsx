/** The pools and operations in a pool, as a table. */

import { Button, SegmentedRadioGroup, TextInput } from '@gravity-ui/uikit';
import { useMemo, useState } from 'react';
import { useLive } from '../../api/live';
import { operationsByPool, pools as askPools } from '../../api/scheduling';
import { Async } from '../../components/Async';
import { fieldsOf, OPERATION_FIELDS } from '../../model/columns';
import type { Resources } from '../../model/resources';
import { shareEntries } from '../../model/sharing';
import { printSort, useSort, useUrlState } from '../../model/urlState';
import { ColumnChoice, useColumnSet } from '../scheduling/ColumnChoice';
import { PoolTable } from '../scheduling/PoolTable';

export function PoolInside({ tree, name, total }: { tree: string; name: string; total: Resources }) {
  const [url, change] = useUrlState();
  const sort = useSort(url);
  const [open, setOpen] = useState<readonly string[]>([]);
  const set = useColumnSet();
  const fields = fieldsOf(set);
  const absolute =
    url.get('values') === 'amounts' || (url.get('values') === null && set.resource !== undefined);
  const context = useMemo(() => ({ total, absolute }), [total, absolute]);
  const pools = useLive('pools', ['pools', tree, fields.join()], () => askPools(tree, fields), {
    share: shareEntries,
  });
  const asked = [name, ...open];
  const operations = useLive(
    ['pools', 'operations'],
    ['operations by pool', tree, fields.join(), asked],
    () => operationsByPool(tree, asked, [...fields, ...OPERATION_FIELDS]),
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
        <ColumnChoice set={set} total={total} />
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
