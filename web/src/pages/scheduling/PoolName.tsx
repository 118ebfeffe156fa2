/** The first cell of a row: what it is, and what can be done with it. */

import { ChevronDown, ChevronRight } from '@gravity-ui/icons';
import { Icon } from '@gravity-ui/uikit';
import { createContext, useContext } from 'react';
import { Link, useLocation } from 'wouter';
import { poolPath } from '../../api/scheduling';
import { Allowed, useMay } from '../../api/session-context';
import { Mark } from '../../components/Parts';
import { OpenedMenu, RowMenu } from '../../components/RowMenu';
import { count, shortId } from '../../model/format';
import { links } from '../../model/links';
import { pathOf, type Pools, type Row } from '../../model/pools';
import { OperationMenuById } from '../operation/OperationActions';

export type Asked = { what: 'edit' | 'remove'; name: string } | { what: 'create'; parent: string };

/** All pools, for those menus that are open: cells that got them would be drawn anew with every answer. */
export const PoolsContext = createContext<Pools>({});

interface Props {
  row: Row;
  tree: string;
  onToggle: (name: string) => void;
  onAsk: (asked: Asked) => void;
}

export function Name({ row, tree, onToggle, onAsk }: Props) {
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
  return <PoolName row={row} indent={indent} tree={tree} onToggle={onToggle} onAsk={onAsk} />;
}

interface PoolNameProps extends Props {
  row: Row & { kind: 'pool' };
  indent: { paddingLeft: number };
}

function PoolName({ row, indent, tree, onToggle, onAsk }: PoolNameProps) {
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
      {row.pool.is_ephemeral === true && <Mark title="Exists while it has operations">ephemeral</Mark>}
      <span className="row-menu">
        <RowMenu label={menuOf(row.name)}>{() => <Menu row={row} tree={tree} onAsk={onAsk} />}</RowMenu>
      </span>
    </div>
  );
}

const menuOf = (name: string): string => `Actions for ${name}`;

function Menu({ row, tree, onAsk }: Omit<PoolNameProps, 'indent' | 'onToggle'>) {
  const [, navigate] = useLocation();
  const real = row.pool.is_ephemeral !== true;
  const path = poolPath(tree, pathOf(useContext(PoolsContext), row.name));
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
    <OpenedMenu label={menuOf(row.name)} items={real && changes.length > 0 ? [items, changes] : [items]} />
  );
}
