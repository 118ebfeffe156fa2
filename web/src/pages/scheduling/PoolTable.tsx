/** Pools and operations as a tree of rows. */

import { ChevronDown, ChevronRight, Ellipsis } from '@gravity-ui/icons';
import { Button, DropdownMenu, Icon } from '@gravity-ui/uikit';
import { useMemo, useState, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { pool as askPool, poolPath, removePool } from '../../api/scheduling';
import { useOnce } from '../../api/live';
import { PartBar, ShareBar } from '../../components/Bar';
import { Confirm } from '../../components/Confirm';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Mark } from '../../components/Parts';
import { Loading } from '../../components/Async';
import { Allowed, useMay } from '../../api/session-context';
import { OperationMenuById } from '../operation/OperationActions';
import {
  barOf,
  charge,
  status,
  type Any,
  type Column,
  type ColumnSet,
  type Context,
} from '../../model/columns';
import { compareNames, count, percent, shortId } from '../../model/format';
import { links } from '../../model/links';
import { flatten, pathOf, type Operations, type Order, type Pools, type Row } from '../../model/pools';
import type { Sort } from '../../model/urlState';
import { PoolEditor } from '../pool/PoolEditor';

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

type Asked = { what: 'edit' | 'remove'; name: string } | { what: 'create'; parent: string };

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
  const columns: TableColumn<Row>[] = [
    {
      id: 'name',
      title: 'Pool',
      width: 240,
      cell: row => <Name row={row} tree={tree} pools={pools} onToggle={onToggle} onAsk={setAsked} />,
    },
    ...set.columns.map(column => ({
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
  return (
    <>
      <DataTable
        label="Pools"
        columns={columns}
        rows={rows}
        rowKey={row => row.key}
        sort={sort}
        onSort={onSort}
        isMuted={row => row.kind !== 'pool'}
        empty={filter === '' ? empty : `No pool has "${filter}" in its name.`}
      />
      {asked?.what === 'edit' && <PoolEditor tree={tree} name={asked.name} onClose={close} onDone={close} />}
      {asked?.what === 'create' && (
        <PoolEditor tree={tree} parent={asked.parent} onClose={close} onDone={close} />
      )}
      {asked?.what === 'remove' && <Remove tree={tree} pools={pools} name={asked.name} onClose={close} />}
    </>
  );
}

const elementOf = (row: Exclude<Row, { kind: 'more' }>): Any =>
  row.kind === 'pool' ? row.pool : row.operation;

/** Elements without a value come last whatever the direction; equal ones by name. */
function orderBy(sort: Sort | undefined, set: ColumnSet, context: Context): Order {
  const column = set.columns.find(c => c.id === sort?.by);
  if (column === undefined) {
    const sign = sort?.by === 'name' && sort.down ? -1 : 1;
    return (a, b) => sign * compareNames(a.name, b.name);
  }
  return (a, b) => {
    const [x, y] = [column.value(a, context), column.value(b, context)];
    if (x === undefined || y === undefined || x === y) {
      return Number(x === undefined) - Number(y === undefined) || compareNames(a.name, b.name);
    }
    const ascending =
      typeof x === 'number' && typeof y === 'number' ? x - y : compareNames(String(x), String(y));
    return sort?.down === true ? -ascending : ascending;
  };
}

/** Bars end at the largest share of a pool: small clusters of pools would be all but invisible otherwise. */
function scaleOf(rows: Row[], set: ColumnSet, context: Context): number {
  let largest = 0.05;
  for (const row of rows) {
    if (row.kind === 'more') continue;
    const bar = barOf(elementOf(row), set.resource, context.total);
    largest = Math.max(largest, bar.usage, bar.fair, bar.guarantee, Math.min(bar.demand, 1));
  }
  return Math.min(1, largest);
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

function Name({
  row,
  tree,
  pools,
  onToggle,
  onAsk,
}: {
  row: Row;
  tree: string;
  pools: Pools;
  onToggle: (name: string) => void;
  onAsk: (asked: Asked) => void;
}) {
  const indent = { paddingLeft: row.depth * 18 };
  if (row.kind === 'more') {
    return (
      <div className="tree-name" style={indent}>
        <span className="tree-name__toggle" />
        <Link href={links.operations({ pool: row.owner, pool_tree: tree })}>
          and {count(row.hidden)} more operations
        </Link>
      </div>
    );
  }
  if (row.kind === 'operation') {
    const { title, lightweight, is_gang } = row.operation;
    return (
      <div className="tree-name" style={indent}>
        <span className="tree-name__toggle" />
        <Link href={links.operation(row.id)} className="clip" title={`${title ?? ''}\n${row.id}`}>
          {title ?? <span className="mono">{shortId(row.id)}</span>}
        </Link>
        {lightweight === true && (
          <Mark title="Does not count against the limit of running operations">light</Mark>
        )}
        {is_gang === true && <Mark title="All of its jobs or none">gang</Mark>}
        <span className="row-menu">
          <Allowed to="manage" operation={row.id}>
            <OperationMenuById id={row.id} title={title ?? row.id} />
          </Allowed>
        </span>
      </div>
    );
  }
  const path = poolPath(tree, pathOf(pools, row.name));
  return <PoolName row={row} indent={indent} tree={tree} path={path} onToggle={onToggle} onAsk={onAsk} />;
}

interface PoolNameProps {
  row: Row & { kind: 'pool' };
  indent: { paddingLeft: number };
  tree: string;
  path: string;
  onToggle: (name: string) => void;
  onAsk: (asked: Asked) => void;
}

function PoolName({ row, indent, tree, path, onToggle, onAsk }: PoolNameProps) {
  const [, navigate] = useLocation();
  const real = row.pool.is_ephemeral !== true;
  const mayChange = useMay({ to: 'write', at: path });
  const mayRemove = useMay({ to: 'write', at: path.slice(0, path.lastIndexOf('/')) });
  const items = [
    { text: 'Open', action: () => navigate(links.pool(tree, row.name)) },
    { text: 'Why this share', action: () => navigate(links.pool(tree, row.name, 'why')) },
    { text: 'Operations', action: () => navigate(links.operations({ pool: row.name, pool_tree: tree })) },
    { text: 'Attributes', action: () => navigate(links.pool(tree, row.name, 'attributes')) },
  ];
  const changes = [
    { text: 'Edit', action: () => onAsk({ what: 'edit', name: row.name }), hidden: !mayChange },
    {
      text: 'Create a pool inside',
      action: () => onAsk({ what: 'create', parent: row.name }),
      hidden: row.pool.mode === 'fifo' || !mayChange,
    },
    {
      text: 'Remove',
      theme: 'danger' as const,
      action: () => onAsk({ what: 'remove', name: row.name }),
      hidden: !mayRemove,
    },
  ].filter(item => item.hidden !== true);
  return (
    <div className="tree-name" style={indent}>
      {row.expandable ? (
        <button
          type="button"
          className="tree-name__toggle"
          aria-expanded={row.expanded}
          aria-label={`${row.expanded ? 'Close' : 'Open'} ${row.name}`}
          onClick={() => onToggle(row.name)}
        >
          <Icon data={row.expanded ? ChevronDown : ChevronRight} size={14} />
        </button>
      ) : (
        <span className="tree-name__toggle" />
      )}
      <Link href={links.pool(tree, row.name)} className="clip" title={row.name}>
        {row.name}
      </Link>
      {!real && <Mark title="Exists while it has operations">ephemeral</Mark>}
      <span className="row-menu">
        <DropdownMenu
          items={real && changes.length > 0 ? [items, changes] : [items]}
          renderSwitcher={switcher => (
            <Button {...switcher} view="flat" size="s" aria-label={`Actions for ${row.name}`}>
              <Icon data={Ellipsis} />
            </Button>
          )}
        />
      </span>
    </div>
  );
}

export function Remove({
  tree,
  pools,
  name,
  onClose,
  onDone,
}: {
  tree: string;
  pools: Pools;
  name: string;
  onClose: () => void;
  onDone?: () => void;
}) {
  const [opened] = useState(() => Date.now());
  const { data } = useOnce(['pool to remove', tree, name, opened], () => askPool(tree, name));
  const inside = data?.child_pool_count ?? 0;
  return (
    <Confirm
      title={`Remove ${name}?`}
      verb="Remove"
      danger
      disabled={data === undefined || inside > 0}
      act={() => removePool(poolPath(tree, pathOf(pools, name)))}
      onClose={onClose}
      onDone={onDone ?? onClose}
    >
      {data === undefined ? (
        <Loading />
      ) : inside > 0 ? (
        <p>It has {inside === 1 ? 'a pool' : `${count(inside)} pools`} inside. Remove or move those first.</p>
      ) : (data.operation_count ?? 0) > 0 ? (
        <p>
          {count(data.operation_count)} operations are in it. They go on without its settings, in an ephemeral
          pool of the same name below the root.
        </p>
      ) : (
        <p>Its settings are lost. It has no operations.</p>
      )}
    </Confirm>
  );
}
