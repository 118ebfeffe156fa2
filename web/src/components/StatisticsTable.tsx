/** Statistics as a tree of rows with their sums. */

import type { StatisticsRow } from '../model/statistics';
import { count } from '../model/format';
import { statisticText } from '../model/statistics';
import { DataTable, type TableColumn } from './DataTable';

const number = (
  id: string,
  title: string,
  of: (row: StatisticsRow) => number | undefined,
): TableColumn<StatisticsRow> => ({
  id,
  title,
  width: 120,
  numeric: true,
  cell: row => <span className="clip">{statisticText(row.path, of(row))}</span>,
});

const NAME: TableColumn<StatisticsRow> = {
  id: 'name',
  title: 'Statistic',
  width: 280,
  cell: row => (
    <span className="clip" style={{ paddingLeft: row.depth * 18 }} title={row.path}>
      {row.summary === undefined ? <b>{row.name}</b> : row.name}
    </span>
  ),
};

const OF_JOBS: TableColumn<StatisticsRow>[] = [
  NAME,
  number('sum', 'Sum', row => row.summary?.sum),
  number('avg', 'Average', row =>
    row.summary === undefined || row.summary.count === 0 ? undefined : row.summary.sum / row.summary.count,
  ),
  number('min', 'Min', row => row.summary?.min),
  number('max', 'Max', row => row.summary?.max),
  number('last', 'Last', row => row.summary?.last),
  { id: 'count', title: 'Count', width: 90, numeric: true, cell: row => count(row.summary?.count) },
];

const OF_ONE: TableColumn<StatisticsRow>[] = [NAME, number('value', 'Value', row => row.summary?.sum)];

/** Of many jobs, or of one: then there is only one value of each. */
export function StatisticsTable({ rows, one = false }: { rows: StatisticsRow[]; one?: boolean }) {
  return (
    <DataTable
      label="Statistics"
      columns={one ? OF_ONE : OF_JOBS}
      rows={rows}
      rowKey={row => row.path}
      rowHeight={28}
      empty="There are no statistics of that kind yet."
    />
  );
}
