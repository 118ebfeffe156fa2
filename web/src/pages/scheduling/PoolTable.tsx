/** Pools and operations as a tree of rows. */

import { useMemo, useState, type ReactNode } from 'react';
import { PartBar, ShareBar } from '../../components/Bar';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Mark } from '../../components/Parts';
import { useEvent } from '../../components/useEvent';
import {
  barOf,
  charge,
  status,
  type Any,
  type Column,
  type ColumnSet,
  type Context,
} from '../../model/columns';
import { compareNames, count, percent } from '../../model/format';
import { byName, flatten, type Operations, type Order, type Pools, type Row } from '../../model/pools';
import type { Sort } from '../../model/urlState';
import { PoolEditor } from '../pool/PoolEditor';
import { Name, PoolsContext, type Asked } from './PoolName';
import { Remove } from './RemovePool';

interface Props {
  tree: string;
  pools: Pools;
  operations: Record<string, Operations>;
  set: ColumnSet;
  context: Context;
  under: string;
  filter: string;
  sort: Sort | undefined;
  onSort: (sort: Sort | undefined) => void;
  isExpanded: (name: string) => boolean;
  onToggle: (name: string) => void;
  /** Instead of rows, when there are none at all. */
  empty: ReactNode;
}

export function PoolTable(props: Props) {
  const { tree, pools, operations, set, context, under, filter, sort, onSort, isExpanded, onToggle, empty } =
    props;
  const [asked, setAsked] = useState<Asked | undefined>(undefined);
  const close = () => setAsked(undefined);
  const order = useMemo(() => orderBy(sort, set, context), [sort, set, context]);
  const rows = useMemo(
    () => flatten(pools, { under, filter, isExpanded, operationsOf: name => operations[name], order }),
    [pools, operations, under, filter, isExpanded, order],
  );
  const scale = useMemo(() => scaleOf(rows, set, context), [rows, set, context]);
  // The address changes what a toggle does; rows need not be drawn anew for that.
  const toggle = useEvent(onToggle);
  const operationsShown = rows.some(isOperation);
  // The same columns as before leave rows that say the same as they are.
  const columns = useMemo(
    () =>
      columnsOf(set, operationsShown, context, scale, row => (
        <Name row={row} tree={tree} onToggle={toggle} onAsk={setAsked} />
      )),
    [set, operationsShown, context, scale, tree, toggle],
  );
  return (
    <PoolsContext value={pools}>
      <DataTable
        label="Pools"
        columns={columns}
        rows={rows}
        rowKey={keyOf}
        sort={sort}
        onSort={onSort}
        isMuted={isOperation}
        empty={filter === '' ? empty : `No pool has "${filter}" in its name.`}
      />
      {asked?.what === 'edit' && <PoolEditor tree={tree} name={asked.name} onClose={close} onDone={close} />}
      {asked?.what === 'create' && (
        <PoolEditor tree={tree} parent={asked.parent} onClose={close} onDone={close} />
      )}
      {asked?.what === 'remove' && <Remove tree={tree} pools={pools} name={asked.name} onClose={close} />}
    </PoolsContext>
  );
}

const isOperation = (row: Row): boolean => row.kind !== 'pool';
const keyOf = (row: Row): string => row.key;

function columnsOf(
  set: ColumnSet,
  operationsShown: boolean,
  context: Context,
  scale: number,
  name: (row: Row) => ReactNode,
): TableColumn<Row>[] {
  const shown = set.columns.filter(column => operationsShown || column.ofOperations !== true);
  return [
    { id: 'name', title: 'Pool', width: 240, cell: name },
    ...shown.map(column => ({
      ...column,
      ...(column.draw === 'bar'
        ? { hint: `${column.hint ?? ''} Bars end at ${percent(scale)} of the cluster.` }
        : {}),
      cell: (row: Row) =>
        row.kind === 'more' ? null : (
          <Cell column={column} element={elementOf(row)} set={set} context={context} scale={scale} />
        ),
    })),
  ];
}

const elementOf = (row: Exclude<Row, { kind: 'more' }>): Any =>
  row.kind === 'pool' ? row.pool : row.operation;

/** Elements without a value come last whatever the direction; equal ones by name. */
function orderBy(sort: Sort | undefined, set: ColumnSet, context: Context): Order | undefined {
  const column = set.columns.find(c => c.id === sort?.by);
  if (column === undefined) {
    return sort?.by === 'name' && sort.down ? (a, b) => byName(b, a) : undefined;
  }
  return (a, b) => {
    const [x, y] = [column.value(a.element, context), column.value(b.element, context)];
    if (x === undefined || y === undefined || x === y) {
      return Number(x === undefined) - Number(y === undefined) || byName(a, b);
    }
    const ascending =
      typeof x === 'number' && typeof y === 'number' ? x - y : compareNames(String(x), String(y));
    return sort?.down === true ? -ascending : ascending;
  };
}

/**
 * Bars end at the largest share of a pool: small pools would be all but invisible otherwise. In steps: with
 * every other end all bars are drawn anew.
 */
function scaleOf(rows: Row[], set: ColumnSet, context: Context): number {
  let largest = 0.05;
  for (const row of rows) {
    if (row.kind === 'more') continue;
    const bar = barOf(elementOf(row), set.resource, context.total);
    largest = Math.max(largest, bar.usage, bar.fair, bar.guarantee, Math.min(bar.demand, 1));
  }
  return Math.min(1, Math.ceil(largest * 20 - 1e-9) / 20);
}

function Cell({
  column,
  element,
  set,
  context,
  scale,
}: {
  column: Column;
  element: Any;
  set: ColumnSet;
  context: Context;
  scale: number;
}) {
  switch (column.draw) {
    case 'bar':
      return <ShareBar {...barOf(element, set.resource, context.total)} scale={scale} />;
    case 'running':
      return (
        <CountBar
          value={element.running_operation_count}
          limit={element.max_running_operation_count}
          what="running"
        />
      );
    case 'total':
      return (
        <CountBar value={element.operation_count} limit={element.max_operation_count} what="operations" />
      );
    case 'volume': {
      const part = charge(element);
      return part === undefined ? null : (
        <>
          <PartBar part={part} kind="volume" label={`volume: ${percent(part)} of the capacity`} />
          <span className="numbers volume-text">{percent(part)}</span>
        </>
      );
    }
    case 'badge': {
      const text = status(element);
      return text === '' ? null : <Mark tone={text === 'below' ? 'normal' : 'warning'}>{text}</Mark>;
    }
    default:
      return <span className="clip">{column.text(element, context)}</span>;
  }
}

function CountBar({
  value,
  limit,
  what,
}: {
  value: number | undefined;
  limit: number | undefined;
  what: string;
}) {
  if (value === undefined || limit === undefined) return null;
  const part = limit === 0 ? 1 : value / limit;
  return (
    <PartBar
      part={part}
      kind={part >= 1 ? 'full' : 'plain'}
      label={`${count(value)} ${what} of at most ${count(limit)}`}
    />
  );
}
