/** One pool: what it has, what it had, why, and what is in it. */

import { ArrowRightArrowLeft, Pencil, Plus, TrashBin } from '@gravity-ui/icons';
import { Button, Icon, Select } from '@gravity-ui/uikit';
import { useState } from 'react';
import { useLocation, useParams } from 'wouter';
import type { Json } from '../../api/client';
import { containsCode, RESOLVE_ERROR } from '../../api/errors';
import { useLive } from '../../api/live';
import {
  pool as askPool,
  poolPath,
  pools as askPools,
  settings as askSettings,
  treeSummary,
  type TreeSummary,
} from '../../api/scheduling';
import { Allowed } from '../../api/session-context';
import { ownAcl } from '../../api/subjects';
import { AccessTab } from '../../components/AccessTab';
import { Async, Loading } from '../../components/Async';
import { ErrorView } from '../../components/ErrorView';
import { FavouriteStar } from '../../components/Favourites';
import { Copy, Crumbs, Mark, useTitle } from '../../components/Parts';
import { Tabs, useTab, type TabItem } from '../../components/Tabs';
import { Value } from '../../components/Value';
import { POOL_PERMISSIONS, responsiblesOf } from '../../model/acl';
import { words } from '../../model/format';
import { links } from '../../model/links';
import { pathOf, ROOT, type Pool, type Pools } from '../../model/pools';
import { shareEntries } from '../../model/sharing';
import { useUrlState } from '../../model/urlState';
import { Remove } from '../scheduling/RemovePool';
import { MoveQuota } from './MoveQuota';
import { PoolEditor } from './PoolEditor';
import { PoolInside } from './PoolInside';
import { PoolOverview } from './PoolOverview';
import { PoolWhy } from './PoolWhy';

const TABS: TabItem[] = [
  { id: 'overview', title: 'Overview' },
  { id: 'why', title: 'Why this share' },
  { id: 'inside', title: 'Pools and operations' },
  { id: 'attributes', title: 'Attributes' },
];
/** Of pools that somebody made: the root and ephemeral pools have no list of their own. */
const WITH_ACCESS: TabItem[] = [...TABS, { id: 'access', title: 'Access' }];

export function PoolPage() {
  const { tree = '', pool: name = '' } = useParams<{ tree: string; pool: string }>();
  useTitle(name);
  const pool = useLive('pools', ['pool', tree, name], () => askPool(tree, name));
  const around = useLive(
    'pools',
    ['pools', tree, 'around'],
    () => askPools(tree, ['parent', 'is_ephemeral']),
    { share: shareEntries },
  );
  const summary = useLive(['pools', 'nodes'], ['summary', tree], () => treeSummary(tree));
  if (pool.data === undefined || around.data === undefined || summary.data === undefined) {
    const error = pool.error ?? around.error ?? summary.error;
    return error === null ? <Loading /> : <Missing error={error} tree={tree} name={name} />;
  }
  return (
    <Loaded
      tree={tree}
      name={name}
      pool={pool.data}
      pools={around.data}
      error={pool.error}
      summary={summary.data}
    />
  );
}

interface LoadedProps extends HeadProps {
  error: Error | null;
  summary: TreeSummary;
}

function Loaded({ tree, name, pool, pools, error, summary }: LoadedProps) {
  const items = isReal(pool, name) ? WITH_ACCESS : TABS;
  const tab = useTab(items);
  const total = summary.resource_limits;
  return (
    <>
      <Head tree={tree} name={name} pool={pool} pools={pools} />
      {error !== null && <ErrorView error={error} />}
      <Tabs items={items} tab={tab}>
        {tab === 'overview' && <PoolOverview tree={tree} name={name} pool={pool} total={total} />}
        {tab === 'why' && <PoolWhy tree={tree} name={name} />}
        {tab === 'inside' && <PoolInside tree={tree} name={name} total={total} />}
        {tab === 'attributes' && <Attributes tree={tree} name={name} pool={pool} pools={pools} />}
        {tab === 'access' && (
          <AccessTab path={poolPath(tree, pathOf(pools, name))} permissions={POOL_PERMISSIONS} />
        )}
      </Tabs>
    </>
  );
}

const isReal = (pool: Pool, name: string): boolean => pool.is_ephemeral !== true && name !== ROOT;

function Missing({ error, tree, name }: { error: unknown; tree: string; name: string }) {
  const [, navigate] = useLocation();
  if (!containsCode(error, RESOLVE_ERROR)) return <ErrorView error={error} />;
  return (
    <div className="table__empty">
      <h1 className="page__title">There is no pool {name}</h1>
      <p>An ephemeral pool is there as long as it has operations.</p>
      <Button view="outlined" onClick={() => navigate(links.scheduling(tree))}>
        All pools
      </Button>
    </div>
  );
}

interface HeadProps {
  tree: string;
  name: string;
  pool: Pool;
  pools: Pools;
}

function Head({ tree, name, pool, pools }: HeadProps) {
  const [, navigate] = useLocation();
  const [asked, setAsked] = useState<'edit' | 'create' | 'move' | 'remove' | undefined>(undefined);
  const real = isReal(pool, name);
  const whole = pathOf(pools, name);
  const above = whole.slice(0, -1);
  const path = poolPath(tree, whole);
  const names = Object.keys(pools)
    .filter(other => other !== ROOT && other !== name)
    .sort();
  const close = () => setAsked(undefined);
  return (
    <>
      <Crumbs
        items={[
          { title: tree, href: links.scheduling(tree) },
          ...above.map(parent => ({ title: parent, href: links.pool(tree, parent) })),
          { title: name },
        ]}
      />
      <div className="page__head">
        <h1 className="page__title">{name}</h1>
        <FavouriteStar href={links.pool(tree, name)} title={name} kind={`pool of ${tree}`} />
        <Copy text={name} what="name" />
        <Select
          aria-label="Go to another pool"
          placeholder="Go to a pool"
          filterable
          value={[]}
          options={names.map(other => ({ value: other, content: pathOf(pools, other).join(' / ') }))}
          onUpdate={([chosen]) => chosen !== undefined && navigate(links.pool(tree, chosen))}
        />
        {real && <Responsibles path={path} />}
        {pool.mode === 'fifo' && <Mark title="The oldest operations first">FIFO</Mark>}
        {pool.is_ephemeral === true && <Mark title="Exists while it has operations">ephemeral</Mark>}
        {pool.integral_guarantee_type !== undefined && pool.integral_guarantee_type !== 'none' && (
          <Mark tone="info">{pool.integral_guarantee_type}</Mark>
        )}
        {pool.starvation_status !== undefined && pool.starvation_status !== 'non_starving' && (
          <Mark tone="warning">{words(pool.starvation_status)}</Mark>
        )}
        <div className="page__actions">
          <Button view="outlined" onClick={() => navigate(links.operations({ pool: name, pool_tree: tree }))}>
            Operations
          </Button>
          {pool.mode !== 'fifo' && pool.is_ephemeral !== true && (
            <Allowed to="write" at={path}>
              <Button view="outlined" onClick={() => setAsked('create')}>
                <Icon data={Plus} />
                Pool inside
              </Button>
            </Allowed>
          )}
          {real && (
            <>
              <Allowed to="write" at={path}>
                <Button view="outlined" onClick={() => setAsked('move')}>
                  <Icon data={ArrowRightArrowLeft} />
                  Move quota
                </Button>
              </Allowed>
              <Allowed to="write" at={poolPath(tree, above)}>
                <Button view="outlined" onClick={() => setAsked('remove')}>
                  <Icon data={TrashBin} />
                  Remove
                </Button>
              </Allowed>
              <Allowed to="write" at={path}>
                <Button view="action" onClick={() => setAsked('edit')}>
                  <Icon data={Pencil} />
                  Edit
                </Button>
              </Allowed>
            </>
          )}
        </div>
      </div>
      {asked === 'edit' && (
        <PoolEditor
          tree={tree}
          name={name}
          onClose={close}
          onDone={now => {
            close();
            if (now !== name) navigate(links.pool(tree, now), { replace: true });
          }}
        />
      )}
      {asked === 'create' && (
        <PoolEditor
          tree={tree}
          parent={name}
          onClose={close}
          onDone={created => navigate(links.pool(tree, created))}
        />
      )}
      {asked === 'move' && <MoveQuota tree={tree} from={name} pools={pools} onClose={close} />}
      {asked === 'remove' && (
        <Remove
          tree={tree}
          pools={pools}
          name={name}
          onClose={close}
          onDone={() => navigate(links.scheduling(tree), { replace: true })}
        />
      )}
    </>
  );
}

/** Whom to ask about it. */
function Responsibles({ path }: { path: string }) {
  const { data } = useLive('pools', ['own acl', path], () => ownAcl(path));
  const names = responsiblesOf(data ?? []);
  if (names.length === 0) return null;
  return <span className="secondary">responsible: {names.join(', ')}</span>;
}

function Attributes({ tree, name, pool, pools }: HeadProps) {
  const [url, change] = useUrlState();
  const of = pool.is_ephemeral === true ? 'scheduler' : (url.get('of') ?? 'settings');
  const path = poolPath(tree, pathOf(pools, name));
  const settings = useLive('pools', ['settings', path], () => askSettings(path), {
    enabled: of === 'settings',
  });
  return (
    <>
      <div className="toolbar">
        <Button
          view={of === 'settings' ? 'normal' : 'flat'}
          disabled={pool.is_ephemeral === true}
          onClick={() => change({ of: undefined })}
        >
          As set
        </Button>
        <Button view={of === 'scheduler' ? 'normal' : 'flat'} onClick={() => change({ of: 'scheduler' })}>
          As the scheduler sees it
        </Button>
        <span className="secondary mono clip">
          {of === 'settings' ? `${path}/@` : `…/pool_trees/${tree}/pools/${name}`}
        </span>
      </div>
      {of === 'settings' ? (
        <Async query={settings}>
          {value => <Value value={value as Json} label="Settings of the pool" />}
        </Async>
      ) : (
        <Value value={pool as unknown as Json} depth={1} label="The pool in the scheduler" />
      )}
    </>
  );
}
