/** Which columns a table of pools has: one of the sets, or columns of one's own choice. */

import { Select } from '@gravity-ui/uikit';
import { columnSet, columnSets, columnsToChoose, type ColumnSet } from '../../model/columns';
import { CUSTOM, useCustomColumns } from '../../model/customColumns';
import type { Resources } from '../../model/resources';
import { useUrlState } from '../../model/urlState';

export function useColumnSet(): ColumnSet {
  const [url] = useUrlState();
  const [custom] = useCustomColumns();
  const asked = url.get('set') ?? undefined;
  return asked === CUSTOM ? custom : columnSet(asked);
}

export function ColumnChoice({ set, total }: { set: ColumnSet; total: Resources | undefined }) {
  const [, change] = useUrlState();
  const [custom, choose] = useCustomColumns();
  return (
    <>
      <Select
        aria-label="Columns"
        value={[set.id]}
        options={[...columnSets(total), custom].map(s => ({ value: s.id, content: s.title }))}
        onUpdate={([chosen]) =>
          change({
            set: chosen === 'summary' ? undefined : chosen,
            sort: undefined,
            values: undefined,
            columns: undefined,
          })
        }
        label="Columns:"
      />
      {set.id === CUSTOM && (
        <Select
          multiple
          filterable
          aria-label="Columns to show"
          label="Shown:"
          value={custom.columns.map(column => column.id)}
          options={columnsToChoose().map(column => ({ value: column.id, content: column.title }))}
          renderSelectedOption={(_, index) => (index === 0 ? <>{custom.columns.length}</> : <></>)}
          onUpdate={choose}
        />
      )}
    </>
  );
}
