/** All operations, newest first, by what they are looked for. */

import { ArrowLeft, ArrowRight, Magnifier } from '@gravity-ui/icons';
import { Button, Icon, Select, Switch, TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import { Link } from 'wouter';
import { useLive } from '../../api/live';
import {
  listOperations,
  type Counts,
  type Listing,
  type ListingQuery,
  type OperationSummary,
} from '../../api/operations';
import { Allowed, useSession } from '../../api/session-context';
import { Async } from '../../components/Async';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { JobsBar } from '../../components/JobsBar';
import { Copy, Elapsed, Mark, PoolLink, State, Time, useTitle } from '../../components/Parts';
import { useSteadyNames } from '../../components/useSteadyNames';
import { count, number, shortId } from '../../model/format';
import { links } from '../../model/links';
import {
  commandOf,
  cursorsOf,
  isFinished,
  placesOf,
  STATES,
  tablesOf,
  titleOf,
  waitsForResources,
} from '../../model/operations';
import { useUrlState } from '../../model/urlState';
import { OperationMenu } from '../operation/OperationActions';

const PAGE = 50;

export function Operations() {
  useTitle('Operations');
  const [url] = useUrlState();
  const { login } = useSession();
  const query = queryOf(url, login);
  const listing = useLive('operations', ['operations', query], () => listOperations(query));
  return (
    <>
      <div className="page__head">
        <h1 className="page__title">Operations</h1>
      </div>
      <Filters counts={listing.data} />
      <Async query={listing}>
        {data => (
          <>
            <DataTable
              label="Operations"
              columns={COLUMNS}
              rows={data.operations}
              rowKey={operation => operation.id}
              rowHeight={52}
              empty={
                isFiltered(url) ? 'No operation is as you look for.' : 'Nobody has started an operation yet.'
              }
            />
            <Paging data={data} />
          </>
        )}
      </Async>
    </>
  );
}

const FILTERS = [
  'filter',
  'user',
  'pool_tree',
  'pool',
  'state',
  'type',
  'failed',
  'from',
  'to',
  'subject',
  'may',
  'cursor',
];
const isFiltered = (url: URLSearchParams): boolean => FILTERS.some(name => url.has(name));

/** Whoever looks, in the address: the same link shows everybody their own. */
const ME = 'me';

function queryOf(url: URLSearchParams, login: string): ListingQuery {
  const of = (name: string) => url.get(name) ?? undefined;
  const direction = url.get('direction');
  return {
    filter: of('filter'),
    user: of('user') === ME && login !== '' ? login : of('user'),
    pool_tree: of('pool_tree'),
    pool: of('pool'),
    state: of('state'),
    type: of('type'),
    with_failed_jobs: url.has('failed') ? true : undefined,
    from_time: timeOf(of('from')),
    to_time: timeOf(of('to')),
    access: accessOf(of('subject'), of('may')),
    cursor_time: of('cursor'),
    cursor_direction: direction === 'future' ? 'future' : url.has('cursor') ? 'past' : undefined,
    limit: PAGE,
  };
}

/** The field of the browser has the reader's time without its zone. */
function timeOf(local: string | undefined): string | undefined {
  if (local === undefined) return undefined;
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}

function Filters({ counts }: { counts: Listing | undefined }) {
  const [url, change] = useUrlState();
  // A new filter begins at the newest again.
  const put = (name: string) => (value: string | undefined) =>
    change({ [name]: value, cursor: undefined, direction: undefined });
  const choice = (name: string, label: string, of: Counts | undefined) => (
    <Choice label={label} value={url.get(name)} counts={of ?? {}} onUpdate={put(name)} />
  );
  const { login } = useSession();
  const states = ordered(counts?.state_counts ?? {});
  const severalTrees = Object.keys(counts?.pool_tree_counts ?? {}).length > 1 || url.has('pool_tree');
  return (
    <div className="toolbar">
      <TextInput
        className="toolbar__filter"
        value={url.get('filter') ?? ''}
        onUpdate={put('filter')}
        placeholder="Title, id, alias, user, pool"
        hasClear
        controlProps={{ 'aria-label': 'Filter operations by text' }}
        startContent={<Icon data={Magnifier} size={14} className="find-icon" />}
      />
      {choice('state', 'State:', states)}
      <Choice
        label="User:"
        value={url.get('user')}
        counts={withMe(counts?.user_counts ?? {}, login)}
        onUpdate={put('user')}
      />
      {severalTrees && choice('pool_tree', 'Tree:', counts?.pool_tree_counts)}
      {choice('pool', 'Pool:', counts?.pool_counts)}
      {choice('type', 'Type:', counts?.type_counts)}
      <Period label="From" value={url.get('from')} onUpdate={put('from')} />
      <Period label="To" value={url.get('to')} onUpdate={put('to')} />
      <AccessFilter put={put} subject={url.get('subject') ?? ''} permission={url.get('may') ?? 'read'} />
      <Switch checked={url.has('failed')} onUpdate={on => put('failed')(on ? 'true' : undefined)}>
        With failed jobs{' '}
        {counts?.failed_jobs_count === undefined ? '' : `(${count(counts.failed_jobs_count)})`}
      </Switch>
      {isFiltered(url) && (
        <Button
          view="flat"
          onClick={() => change(Object.fromEntries([...FILTERS, 'direction'].map(name => [name, undefined])))}
        >
          Clear
        </Button>
      )}
    </div>
  );
}

function ordered(states: Counts): Counts {
  const known = STATES.filter(state => states[state] !== undefined);
  const others = Object.keys(states).filter(state => !STATES.includes(state));
  return Object.fromEntries([...known, ...others].map(state => [state, states[state] ?? 0]));
}

interface ChoiceProps {
  label: string;
  value: string | null;
  counts: Counts;
  onUpdate: (value: string | undefined) => void;
}

/**
 * A filter with the number of operations behind each choice. There may be thousands of choices, and new numbers
 * every second: they are made when the list is opened for the first time.
 */
function Choice({ label, value, counts, onUpdate }: ChoiceProps) {
  const [opened, setOpened] = useState(false);
  const names = Object.keys(counts);
  const all = value !== null && !Object.hasOwn(counts, value) ? [value, ...names] : names;
  const chosen = value === null ? [] : [value];
  const [shown, onOpen] = useSteadyNames(all);
  return (
    <Select
      aria-label={label.replace(':', '')}
      label={label}
      value={chosen}
      placeholder="all"
      hasClear
      filterable={all.length > 8}
      onOpenChange={open => {
        setOpened(opened || open);
        onOpen(open);
      }}
      options={(opened ? shown : chosen).map(name => ({
        value: name,
        content: (
          <span className="choice">
            <span className="clip">{name}</span>
            <span className="secondary numbers">{count(counts[name] ?? 0)}</span>
          </span>
        ),
        text: name,
      }))}
      renderSelectedOption={option => <span className="clip choice__selected">{option.text}</span>}
      onUpdate={([chosen]) => onUpdate(chosen)}
      popupWidth={260}
    />
  );
}

function withMe(counts: Counts, login: string): Counts {
  return login === '' ? counts : { [ME]: counts[login] ?? 0, ...counts };
}

function accessOf(subject: string | undefined, permission: string | undefined): ListingQuery['access'] {
  if (subject === undefined) return undefined;
  return { subject, permissions: permission === 'manage' ? ['read', 'manage'] : ['read'] };
}

const PERMISSIONS = [
  { value: 'read', content: 'read' },
  { value: 'manage', content: 'read and manage' },
];

/** Operations whose jobs somebody may look into, or which they may change. */
function AccessFilter({
  put,
  subject,
  permission,
}: {
  put: (name: string) => (value: string | undefined) => void;
  subject: string;
  permission: string;
}) {
  return (
    <>
      <TextInput
        className="toolbar__subject"
        value={subject}
        onUpdate={put('subject')}
        placeholder="Accessible for: user, group"
        hasClear
        controlProps={{ 'aria-label': 'Accessible for this user or group' }}
      />
      {subject !== '' && (
        <Select
          aria-label="To"
          label="To:"
          value={[permission]}
          options={PERMISSIONS}
          onUpdate={([chosen]) => put('may')(chosen === 'manage' ? chosen : undefined)}
        />
      )}
    </>
  );
}

function Period({
  label,
  value,
  onUpdate,
}: {
  label: string;
  value: string | null;
  onUpdate: (value: string | undefined) => void;
}) {
  return (
    <label className="period">
      <span className="secondary">{label}</span>
      <input
        type="datetime-local"
        value={value ?? ''}
        onChange={event => onUpdate(event.target.value || undefined)}
      />
    </label>
  );
}

const COLUMNS: TableColumn<OperationSummary>[] = [
  {
    id: 'title',
    title: 'Operation',
    width: 300,
    cell: operation => (
      <>
        <div className="two-lines">
          <Link href={links.operation(operation.id)} className="clip" title={titleOf(operation)}>
            {titleOf(operation)}
          </Link>
          <span className="secondary clip">
            <span className="mono">{shortId(operation.id)}</span> {operation.type}
            {operation.brief_spec?.title === undefined ? '' : ` · ${commandOf(operation) ?? ''}`}
            {tablesOf(operation)}
          </span>
        </div>
        <span className="row-menu">
          <Copy text={operation.id} what="id" />
          <Allowed to="manage" operation={operation.id}>
            <OperationMenu operation={operation} />
          </Allowed>
        </span>
      </>
    ),
  },
  {
    id: 'state',
    title: 'State',
    width: 130,
    cell: operation => <State state={operation.state} suspended={operation.suspended} />,
  },
  {
    id: 'jobs',
    title: 'Jobs',
    width: 250,
    cell: operation => (
      <JobsBar
        jobs={operation.brief_progress?.jobs}
        waits={waitsForResources(operation)}
        finished={isFinished(operation.state)}
      />
    ),
  },
  {
    id: 'user',
    title: 'User',
    width: 120,
    cell: operation => <span className="clip">{operation.authenticated_user}</span>,
  },
  {
    id: 'pool',
    title: 'Pool',
    width: 190,
    cell: operation => (
      <div className="two-lines">
        {placesOf(operation).map(({ tree, pool, weight }) => (
          <span key={tree} className="clip">
            <PoolLink tree={tree} pool={pool} />
            {weight !== undefined && <Mark>{`weight ${number(weight)}`}</Mark>}
          </span>
        ))}
      </div>
    ),
  },
  { id: 'start', title: 'Started', width: 160, cell: operation => <Time at={operation.start_time} /> },
  {
    id: 'duration',
    title: 'Duration',
    width: 120,
    numeric: true,
    cell: operation => <Elapsed start={operation.start_time} end={operation.finish_time} />,
  },
];

function Paging({ data }: { data: Listing }) {
  const [url, change] = useUrlState();
  const cursors = cursorsOf(data.operations);
  const forward = url.get('direction') === 'future';
  // Going back in time, "incomplete" speaks of older ones, going forward of newer ones.
  const older = forward ? true : data.incomplete;
  const newer = forward ? data.incomplete : url.has('cursor');
  if (!older && !newer) return null;
  return (
    <div className="toolbar">
      <Button
        view="outlined"
        disabled={!url.has('cursor')}
        onClick={() => change({ cursor: undefined, direction: undefined }, true)}
      >
        Newest
      </Button>
      <Button
        view="outlined"
        disabled={!newer || cursors === undefined}
        onClick={() => change({ cursor: cursors?.newer, direction: 'future' }, true)}
      >
        <Icon data={ArrowLeft} />
        Newer
      </Button>
      <Button
        view="outlined"
        disabled={!older || cursors === undefined}
        onClick={() => change({ cursor: cursors?.older, direction: undefined }, true)}
      >
        Older
        <Icon data={ArrowRight} />
      </Button>
    </div>
  );
}
