/** What is in tables and files. */

import { Button } from '@gravity-ui/uikit';
import { useLive } from '../../api/live';
import * as api from '../../api/tree';
import { Async } from '../../components/Async';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Card } from '../../components/Parts';
import { bytes, count, plural } from '../../model/format';
import { cellText, columnsOf } from '../../model/tableRows';

type Numbered = [index: number, row: api.TableStart['rows'][number]];

/** The first rows: as many as the browser can hold with ease. */
export function Rows({ path }: { path: string }) {
  const start = useLive('any', ['rows', path], () => api.tableStart(path));
  return (
    <Async query={start}>
      {({ rowCount, rows }) => {
        const columns: TableColumn<Numbered>[] = columnsOf(rows).map(name => ({
          id: name,
          title: name,
          width: 180,
          cell: ([, row]) => {
            const text = cellText(row[name]);
            return (
              <span className="clip mono" title={text}>
                {text}
              </span>
            );
          },
        }));
        return (
          <>
            <p className="secondary">
              {rows.length < rowCount
                ? `The first ${count(rows.length)} of ${plural(rowCount, 'row')}`
                : plural(rowCount, 'row')}
            </p>
            <DataTable
              label="Rows"
              columns={[{ id: '#', title: 'Row', width: 70, cell: ([index]) => count(index) }, ...columns]}
              rows={rows.map((row, index): Numbered => [index, row])}
              rowKey={([index]) => String(index)}
              rowHeight={30}
              empty="The table has no rows."
            />
          </>
        );
      }}
    </Async>
  );
}

export function FileOf({ path }: { path: string }) {
  const attributes = useLive('any', ['attributes', path], () => api.attributes(path));
  return (
    <Async query={attributes}>
      {({ uncompressed_data_size: size, file_name: name, key }) => (
        <Card title="File">
          <p>{typeof size === 'number' ? bytes(size) : 'Nothing is known of its size.'}</p>
          <Button
            view="outlined"
            href={api.fileAddress(path)}
            download={typeof name === 'string' ? name : typeof key === 'string' ? key : 'file'}
          >
            Download
          </Button>
        </Card>
      )}
    </Async>
  );
}
