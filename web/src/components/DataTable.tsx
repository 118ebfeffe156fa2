/**
 * The one table of all pages. Rows are virtual: as many are in the document as can be seen, so a hundred
 * thousand cost no more than a hundred, and a few new ones come with each frame (`model/gradual.ts`). The head and
 * the first column stay where they are.
 */

import { ChevronDown, ChevronUp } from '@gravity-ui/icons';
import { Icon } from '@gravity-ui/uikit';
import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useEffect, useRef, useState, type ReactNode } from 'react';
import { Gradual } from '../model/gradual';
import { sameFields } from '../model/sharing';
import { nextSort, type Sort } from '../model/urlState';

export interface TableColumn<R> {
  id: string;
  title: string;
  hint?: string;
  /** Pixels; the first column takes what is left, unless another one does. */
  width: number;
  grow?: boolean;
  numeric?: boolean;
  /** Sorted downwards first, as numbers are: times. */
  newestFirst?: boolean;
  sortable?: boolean;
  cell: (row: R) => ReactNode;
}

interface Props<R> {
  label: string;
  columns: TableColumn<R>[];
  rows: R[];
  rowKey: (row: R) => string;
  rowHeight?: number;
  sort?: Sort | undefined;
  onSort?: (sort: Sort | undefined) => void;
  isMuted?: (row: R) => boolean;
  empty: ReactNode;
}

const HEAD_HEIGHT = 34;

export function DataTable<R>(props: Props<R>) {
  const { label, columns, rows, rowKey, rowHeight = 34, sort, onSort, isMuted, empty } = props;
  const box = useRef<HTMLDivElement>(null);
  const [gradual] = useState(() => new Gradual());
  const [rangeExtractor, setExtractor] = useState(() => gradual.frame());
  const virtual = useVirtualizer({
    rangeExtractor,
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 6,
    scrollMargin: HEAD_HEIGHT,
  });
  useEffect(() => {
    if (gradual.isDone) return undefined;
    // Not in the very next frame: while one scrolls on, each brings new rows anyway.
    let asked = requestAnimationFrame(() => {
      asked = requestAnimationFrame(() => setExtractor(() => gradual.frame()));
    });
    return () => cancelAnimationFrame(asked);
  });
  const growing = Math.max(
    0,
    columns.findIndex(column => column.grow === true),
  );
  const template = columns
    .map(({ width }, index) => {
      // On a phone the column that stays must leave room for the others.
      const size = index === 0 ? `min(${width}px, 46vw)` : `${width}px`;
      return index === growing ? `minmax(${size}, 1fr)` : size;
    })
    .join(' ');
  return (
    <>
      <div
        className="table"
        ref={box}
        role="table"
        aria-label={label}
        aria-rowcount={rows.length + 1}
        tabIndex={0}
      >
        <div className="table__grid" role="presentation">
          <div
            className="table__row table__head"
            role="row"
            style={{ gridTemplateColumns: template, height: HEAD_HEIGHT }}
          >
            {columns.map((column, index) => (
              <Head key={column.id} column={column} first={index === 0} sort={sort} onSort={onSort} />
            ))}
          </div>
          <div className="table__body" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map(item => {
              const row = rows[item.index];
              if (row === undefined) return null;
              return (
                <RowView
                  key={rowKey(row)}
                  row={row}
                  index={item.index}
                  top={item.start - HEAD_HEIGHT}
                  height={rowHeight}
                  template={template}
                  columns={columns}
                  muted={isMuted?.(row) === true}
                />
              );
            })}
          </div>
        </div>
      </div>
      {/* Beside the table: inside it there may be nothing but rows. */}
      {rows.length === 0 && <div className="table__empty">{empty}</div>}
    </>
  );
}

interface RowProps<R> {
  row: R;
  index: number;
  top: number;
  height: number;
  template: string;
  columns: TableColumn<R>[];
  muted: boolean;
}

function PlainRow<R>({ row, index, top, height, template, columns, muted }: RowProps<R>) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={muted ? 'table__row table__row_muted' : 'table__row'}
      style={{ gridTemplateColumns: template, height, transform: `translateY(${top}px)` }}
    >
      {columns.map((column, place) => (
        <div key={column.id} role="cell" className={cellClass(column.numeric, place === 0)}>
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}

/** Scrolling draws only the rows that come into sight, and news only those that are different. */
const RowView = memo(PlainRow, (before, after) => {
  const { row: old, ...others } = before as RowProps<object>;
  const { row, ...same } = after as RowProps<object>;
  return sameFields(old, row) && sameFields(others, same);
}) as typeof PlainRow;

const cellClass = (numeric: boolean | undefined, first: boolean): string =>
  `table__cell${numeric === true ? ' table__cell_numeric' : ''}${first ? ' table__cell_sticky' : ''}`;

interface HeadProps<R> {
  column: TableColumn<R>;
  first: boolean;
  sort: Sort | undefined;
  onSort: ((sort: Sort | undefined) => void) | undefined;
}

function Head<R>({ column, first, sort, onSort }: HeadProps<R>) {
  const on = sort?.by === column.id;
  const order = on ? (sort.down ? 'descending' : 'ascending') : 'none';
  const canSort = onSort !== undefined && column.sortable !== false;
  return (
    <div
      role="columnheader"
      aria-sort={canSort ? order : undefined}
      className={cellClass(column.numeric, first)}
      title={column.hint}
    >
      {canSort ? (
        <button
          type="button"
          className={on ? 'table__sort table__sort_on' : 'table__sort'}
          onClick={() =>
            onSort(nextSort(sort, column.id, column.numeric === true || column.newestFirst === true))
          }
        >
          <span className="clip">{column.title}</span>
          {on && <Icon data={sort.down ? ChevronDown : ChevronUp} size={12} />}
        </button>
      ) : (
        <span className="clip">{column.title}</span>
      )}
    </div>
  );
}
