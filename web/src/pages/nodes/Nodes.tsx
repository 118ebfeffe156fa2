/** The cluster by node: what each has, and whose jobs are on it. */

import { Magnifier } from '@gravity-ui/icons';
import { Icon, SegmentedRadioGroup, TextInput } from '@gravity-ui/uikit';
import { Link } from 'wouter';
import { useLive } from '../../api/live';
import {
  allocations as askAllocations,
  nodeMarks,
  nodes as askNodes,
  titlesOf,
  type Allocation,
  type Marks,
  type Node,
} from '../../api/nodes';
import { Async } from '../../components/Async';
import { PartBar } from '../../components/Bar';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Mark, State, Time, useTitle } from '../../components/Parts';
import { ago, compareNames, count, percent, plural } from '../../model/format';
import { links } from '../../model/links';
import { amount, amountOf, present, ratio, resourceTitle, type Resource } from '../../model/resources';
import { parseSort, printSort, useUrlState, type Sort } from '../../model/urlState';
import { colorsOf } from '../../model/allocations';
import { AllocationLegend, ColorChoice, useColorBy } from './AllocationLegend';
import { AllocationStrip } from './AllocationStrip';
import { WaitingNodes } from './WaitingNodes';

/** So many nodes are drawn as a map; more could not be told apart. */
const MAP_SHOWN = 120;

type Named = Node & { address: string };

export function Nodes() {
  useTitle('Nodes');
  const [url, change] = useUrlState();
  const nodes = useLive('nodes', ['nodes'], askNodes);
  const marks = useLive('nodes', ['node marks'], nodeMarks);
  const filter = (url.get('filter') ?? '').toLowerCase();
  const all: Named[] = Object.entries(nodes.data ?? {}).map(([address, node]) => ({ ...node, address }));
  const shown = all.filter(
    node =>
      node.address.toLowerCase().includes(filter) ||
      node.tags.some(tag => tag.toLowerCase().includes(filter)),
  );
  const view = url.get('view') ?? 'map';
  const online = all.filter(node => node.state === 'online').length;
  return (
    <>
      <div className="page__head">
        <h1 className="page__title">Nodes</h1>
        {nodes.data !== undefined && (
          <span className="secondary">
            {online} of {plural(all.length, 'node')} online
          </span>
        )}
      </div>
      <div className="toolbar">
        <TextInput
          className="toolbar__filter"
          value={url.get('filter') ?? ''}
          onUpdate={text => change({ filter: text })}
          placeholder="Address or tag"
          hasClear
          controlProps={{ 'aria-label': 'Filter nodes by address or tag' }}
          startContent={<Icon data={Magnifier} size={14} className="find-icon" />}
        />
        <SegmentedRadioGroup
          aria-label="How nodes are shown"
          value={view}
          onUpdate={chosen => change({ view: chosen === 'map' ? undefined : chosen })}
        >
          <SegmentedRadioGroup.Option value="map">Map</SegmentedRadioGroup.Option>
          <SegmentedRadioGroup.Option value="table">Table</SegmentedRadioGroup.Option>
        </SegmentedRadioGroup>
        {view === 'map' && <ColorChoice />}
      </div>
      <WaitingNodes />
      <Async query={nodes}>
        {() =>
          view === 'map' ? (
            <NodeMap nodes={shown} marks={marks.data ?? {}} filtered={filter !== ''} />
          ) : (
            <NodeTable
              nodes={shown}
              marks={marks.data ?? {}}
              sort={parseSort(url.get('sort'))}
              onSort={sort => change({ sort: sort === undefined ? undefined : printSort(sort) })}
            />
          )
        }
      </Async>
    </>
  );
}

const NONE = 'No node has come yet. Start one with: millpond node';
const NOT_FOUND = 'No node has such an address or tag.';

function NodeMap({ nodes, marks, filtered }: { nodes: Named[]; marks: Marks; filtered: boolean }) {
  const by = useColorBy();
  const drawn = [...nodes].sort(byAddress).slice(0, MAP_SHOWN);
  const trees = [...new Set(nodes.map(node => node.tree).filter(tree => tree != null))].sort();
  const shown = drawn.map(node => node.address);
  const { data } = useLive('nodes', ['allocations', trees, shown], () => holdings(trees, shown));
  const { held, titles } = data ?? { held: {}, titles: {} };
  const all = drawn.flatMap(node => held[node.address] ?? []);
  const color = colorsOf(all, by);
  if (nodes.length === 0) return <div className="table__empty">{filtered ? NOT_FOUND : NONE}</div>;
  return (
    <>
      <AllocationLegend all={all} by={by} />
      <div className="node-map">
        {drawn.map(node => (
          <section className="card" key={node.address} aria-label={node.address}>
            <NodeHead node={node} mark={marks[node.address]} />
            <AllocationStrip
              limits={node.resource_limits}
              allocations={held[node.address] ?? []}
              titles={titles}
              by={by}
              color={color}
            />
            {present(node.resource_limits).map(resource => (
              <UsageLine key={resource} node={node} resource={resource} />
            ))}
          </section>
        ))}
      </div>
      {nodes.length > drawn.length && (
        <p className="secondary">The other {count(nodes.length - drawn.length)} are in the table.</p>
      )}
    </>
  );
}

interface Holdings {
  /** By node. */
  held: Record<string, Allocation[]>;
  titles: Record<string, string>;
}

async function holdings(trees: string[], shown: string[]): Promise<Holdings> {
  const held = await merged(trees, askAllocations);
  const titles = await titlesOf(shown.flatMap(address => held[address] ?? []));
  return { held, titles };
}

/** The answers of all trees in one; no node is in two. */
async function merged<T>(
  trees: string[],
  ask: (tree: string) => Promise<Record<string, T>>,
): Promise<Record<string, T>> {
  const answers = await Promise.all(trees.map(ask));
  return Object.assign({}, ...answers) as Record<string, T>;
}

const byAddress = (a: Named, b: Named): number => compareNames(a.address, b.address);

function NodeHead({ node, mark }: { node: Named; mark: Marks[string] | undefined }) {
  return (
    <div className="node-card__head">
      <Link href={links.node(node.address)} className="clip" title={node.address}>
        <b>{node.address}</b>
      </Link>
      <State state={node.state} />
      {mark?.banned === true && <Mark tone="danger">banned</Mark>}
      {mark?.disable_scheduler_jobs === true && <Mark tone="warning">no new jobs</Mark>}
      {node.overcommitted_since != null && (
        <Mark tone="warning" title={`since ${node.overcommitted_since}`}>
          overcommitted
        </Mark>
      )}
    </div>
  );
}

function UsageLine({ node, resource }: { node: Node; resource: Resource }) {
  const used = amountOf(node.resource_usage, resource);
  const all = amountOf(node.resource_limits, resource);
  return (
    <div className="gauge gauge_small">
      <span className="secondary">{resourceTitle(resource)}</span>
      <PartBar
        part={ratio(used, all)}
        kind={used > all ? 'full' : 'plain'}
        label={`${percent(ratio(used, all))} used`}
      />
      <span className="gauge__text">
        {amount(resource, used)} <span className="secondary">of {amount(resource, all)}</span>
      </span>
    </div>
  );
}

function NodeTable({
  nodes,
  marks,
  sort,
  onSort,
}: {
  nodes: Named[];
  marks: Marks;
  sort: Sort | undefined;
  onSort: (sort: Sort | undefined) => void;
}) {
  const part = (resource: Resource) => (node: Named) =>
    ratio(amountOf(node.resource_usage, resource), amountOf(node.resource_limits, resource));
  const usage = (resource: Resource): TableColumn<Named> & { of: (node: Named) => number } => ({
    id: resource,
    title: resourceTitle(resource),
    width: 210,
    of: part(resource),
    cell: node => (
      <>
        <PartBar part={part(resource)(node)} label={`${percent(part(resource)(node))} used`} />
        <span className="numbers">
          {amount(resource, amountOf(node.resource_usage, resource))} of{' '}
          {amount(resource, amountOf(node.resource_limits, resource))}
        </span>
      </>
    ),
  });
  const columns: (TableColumn<Named> & { of: (node: Named) => number | string })[] = [
    {
      id: 'address',
      title: 'Node',
      width: 220,
      of: node => node.address,
      cell: node => (
        <Link href={links.node(node.address)} className="clip" title={node.address}>
          {node.address}
        </Link>
      ),
    },
    {
      id: 'state',
      title: 'State',
      width: 170,
      of: node => node.state,
      cell: node => (
        <>
          <State state={node.state} />
          {marks[node.address]?.banned === true && <Mark tone="danger">banned</Mark>}
          {marks[node.address]?.disable_scheduler_jobs === true && <Mark tone="warning">no new jobs</Mark>}
        </>
      ),
    },
    {
      id: 'jobs',
      title: 'Jobs',
      width: 80,
      numeric: true,
      of: node => node.running_job_count ?? 0,
      cell: node => count(node.running_job_count),
    },
    usage('cpu'),
    usage('memory'),
    usage('user_slots'),
    ...(nodes.some(node => amountOf(node.resource_limits, 'gpu') > 0) ? [usage('gpu')] : []),
    {
      id: 'tree',
      title: 'Tree',
      width: 110,
      of: node => node.tree ?? '',
      cell: node => <span className="clip">{node.tree}</span>,
    },
    {
      id: 'tags',
      title: 'Tags',
      width: 200,
      of: node => node.tags.join(' '),
      cell: node => (
        <span className="clip" title={node.tags.join(', ')}>
          {node.tags.join(', ')}
        </span>
      ),
    },
    {
      id: 'seen',
      title: 'Seen',
      width: 150,
      of: node => node.last_seen_time ?? '',
      cell: node => (node.state === 'online' ? ago(node.last_seen_time) : <Time at={node.last_seen_time} />),
    },
  ];
  const by = columns.find(column => column.id === sort?.by) ?? columns[0];
  const rows = [...nodes].sort((a, b) => {
    const [x, y] = [by?.of(a) ?? '', by?.of(b) ?? ''];
    const order = typeof x === 'number' && typeof y === 'number' ? x - y : compareNames(String(x), String(y));
    return sort?.down === true ? -order : order;
  });
  return (
    <DataTable
      label="Nodes"
      columns={columns}
      rows={rows}
      rowKey={node => node.address}
      sort={sort}
      onSort={onSort}
      empty={NOT_FOUND}
    />
  );
}
