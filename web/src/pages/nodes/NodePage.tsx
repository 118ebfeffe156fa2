/** One node: what it has, its jobs, and what an administrator can do with it. */

import { Button, TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import { Link, useParams } from 'wouter';
import type { Json } from '../../api/client';
import { useLive } from '../../api/live';
import {
  allocationsOf,
  node as askNode,
  nodePath,
  nodeSettings,
  setNode,
  titlesOf,
  type Allocation,
  type Node,
  type NodeSettings,
} from '../../api/nodes';
import { Allowed } from '../../api/session-context';
import { Async } from '../../components/Async';
import { PartBar } from '../../components/Bar';
import { Confirm } from '../../components/Confirm';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Level } from '../../components/ErrorView';
import { FavouriteStar } from '../../components/Favourites';
import {
  Card,
  Copy,
  Crumbs,
  Elapsed,
  Facts,
  Mark,
  OperationLink,
  PoolLink,
  State,
  Time,
  useTitle,
} from '../../components/Parts';
import { Tabs, useTab, type TabItem } from '../../components/Tabs';
import { Value } from '../../components/Value';
import { ago, duration, percent, plural, shortId } from '../../model/format';
import { colorsOf, GROUPS, type Color } from '../../model/allocations';
import { links } from '../../model/links';
import { amount, amountOf, present, ratio, resourcesInWords, resourceTitle } from '../../model/resources';
import { AllocationLegend, ColorChoice, useColorBy } from './AllocationLegend';
import { NodeCharts } from './NodeCharts';
import { NodeEditor } from './NodeEditor';
import { AllocationStrip } from './AllocationStrip';

const TABS: TabItem[] = [
  { id: 'overview', title: 'Overview' },
  { id: 'attributes', title: 'Attributes' },
];

export function NodePage() {
  const { address = '' } = useParams<{ address: string }>();
  useTitle(address);
  const tab = useTab(TABS);
  const node = useLive('nodes', ['node', address], () => askNode(address));
  const settings = useLive('nodes', ['node settings', address], () => nodeSettings(address));
  return (
    <>
      <Crumbs items={[{ title: 'Nodes', href: links.nodes() }, { title: address }]} />
      <Async query={node}>
        {data => (
          <>
            <div className="page__head">
              <h1 className="page__title">{address}</h1>
              <FavouriteStar href={links.node(address)} title={address} kind="node" />
              <Copy text={address} what="address" />
              <State state={data.state} />
              {settings.data?.banned === true && <Mark tone="danger">banned</Mark>}
              {settings.data?.disable_scheduler_jobs === true && <Mark tone="warning">no new jobs</Mark>}
              <div className="page__actions">
                {settings.data !== undefined && (
                  <Allowed to="write" at={nodePath(address)}>
                    <Actions address={address} node={data} settings={settings.data} />
                  </Allowed>
                )}
              </div>
            </div>
            <Tabs items={TABS} tab={tab}>
              {tab === 'overview' && <Overview address={address} node={data} settings={settings.data} />}
              {tab === 'attributes' && (
                <Async query={settings}>
                  {value => <Value value={value as unknown as Json} label="Attributes of the node" />}
                </Async>
              )}
            </Tabs>
          </>
        )}
      </Async>
    </>
  );
}

function Overview({
  address,
  node,
  settings,
}: {
  address: string;
  node: Node;
  settings: NodeSettings | undefined;
}) {
  const tree = node.tree ?? undefined;
  const by = useColorBy();
  const { data } = useLive('nodes', ['allocations of', address], async () => {
    const all = await allocationsOf(address);
    return { held: all, titles: await titlesOf(all) };
  });
  const { held, titles } = data ?? { held: [], titles: {} };
  const cpu = node.running_job_statistics;
  const color = colorsOf(held, by);
  return (
    <>
      {settings !== undefined && settings.alerts.length > 0 && (
        <div className="alerts">
          {settings.alerts.map((alert, index) => (
            <Level key={index} tree={alert} />
          ))}
        </div>
      )}
      <div className="cards">
        <Card title="Resources">
          {present(node.resource_limits).map(resource => {
            const [used, all] = [
              amountOf(node.resource_usage, resource),
              amountOf(node.resource_limits, resource),
            ];
            return (
              <div className="gauge" key={resource}>
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
          })}
        </Card>
        <Card title="Node">
          <Facts
            items={[
              ['Tree', tree],
              ['Tags', node.tags.join(', ')],
              ['Last heartbeat', ago(node.last_seen_time)],
              ['Registered', settings?.register_time !== undefined && <Time at={settings.register_time} />],
              ['Jobs are held by', node.job_environment],
              [
                'Overcommitted since',
                node.overcommitted_since != null && <Time at={node.overcommitted_since} />,
              ],
              ['Ban', settings?.banned === true && (settings.ban_message || 'without a word')],
            ]}
          />
        </Card>
        {cpu !== undefined && (
          <Card title="What preemption could take">
            <Facts
              items={[
                ['Work of running jobs', `${duration(cpu.total_cpu_time * 1_000)} of CPU`],
                ['preemptible', `${duration(cpu.preemptible_cpu_time * 1_000)}`],
                ['aggressively preemptible', `${duration(cpu.aggressively_preemptible_cpu_time * 1_000)}`],
              ]}
            />
          </Card>
        )}
      </div>
      <Card
        title={plural(held.length, 'allocation')}
        extra={
          <span className="card__tools">
            <ColorChoice />
          </span>
        }
      >
        <AllocationStrip
          limits={node.resource_limits}
          allocations={held}
          titles={titles}
          by={by}
          color={color}
        />
        <AllocationLegend all={held} by={by} />
      </Card>
      <DataTable
        label="Allocations of the node"
        columns={columnsFor(titles, color)}
        rows={held}
        rowKey={allocation => allocation.id}
        empty="Nothing is on this node."
      />
      <NodeCharts address={address} gpu={amountOf(node.resource_limits, 'gpu') > 0} />
    </>
  );
}

const columnsFor = (titles: Record<string, string>, color: Color): TableColumn<Allocation>[] => [
  {
    id: 'operation',
    title: 'Operation',
    width: 240,
    cell: one => <OperationLink id={one.operation_id} title={titles[one.operation_id]} />,
  },
  {
    id: 'pool',
    title: 'Pool',
    width: 180,
    cell: one => (
      <>
        <i className="swatch" style={{ background: color(one) }} />
        <PoolLink tree={one.pool_tree} pool={one.pool} />
      </>
    ),
  },
  {
    id: 'job',
    title: 'Job',
    width: 120,
    cell: one =>
      one.job_id == null ? null : (
        <Link href={links.job(one.operation_id, one.job_id)} className="mono" title={one.job_id}>
          {shortId(one.job_id)}
        </Link>
      ),
  },
  { id: 'task', title: 'Task', width: 120, cell: one => <span className="clip">{one.task_name}</span> },
  {
    id: 'state',
    title: 'State',
    width: 170,
    cell: one => (
      <>
        <State state={one.state} />
        {one.preempting === true && <Mark tone="warning">told to go</Mark>}
      </>
    ),
  },
  {
    id: 'group',
    title: 'Preemption',
    width: 180,
    cell: one => (
      <span className="clip" title={GROUPS[one.group].hint}>
        {GROUPS[one.group].title}
      </span>
    ),
  },
  {
    id: 'resources',
    title: 'Has',
    width: 200,
    cell: one => <span className="clip">{resourcesInWords(one.resources)}</span>,
  },
  {
    id: 'start',
    title: 'Started',
    width: 110,
    cell: one => <Time at={one.start_time ?? undefined} />,
  },
  {
    id: 'duration',
    title: 'Runs for',
    width: 110,
    numeric: true,
    cell: one => <Elapsed start={one.start_time ?? undefined} />,
  },
];

interface ActionsProps {
  address: string;
  node: Node;
  settings: NodeSettings;
}

function Actions({ address, node, settings }: ActionsProps) {
  const [asked, setAsked] = useState<'edit' | 'ban' | 'jobs' | undefined>(undefined);
  const [message, setMessage] = useState('');
  const close = () => setAsked(undefined);
  return (
    <>
      <Button view="outlined" onClick={() => setAsked('edit')}>
        Tags and limits
      </Button>
      <Button view="outlined" onClick={() => setAsked('jobs')}>
        {settings.disable_scheduler_jobs ? 'Allow jobs' : 'Take no new jobs'}
      </Button>
      <Button view={settings.banned ? 'outlined' : 'outlined-danger'} onClick={() => setAsked('ban')}>
        {settings.banned ? 'Lift the ban' : 'Ban'}
      </Button>
      {asked === 'edit' && <NodeEditor address={address} node={node} settings={settings} onClose={close} />}
      {asked === 'jobs' && (
        <Confirm
          title={settings.disable_scheduler_jobs ? 'Allow jobs again?' : 'Take no new jobs?'}
          verb={settings.disable_scheduler_jobs ? 'Allow' : 'Disable'}
          danger={!settings.disable_scheduler_jobs}
          act={() => setNode(address, 'disable_scheduler_jobs', !settings.disable_scheduler_jobs)}
          onClose={close}
        >
          <p>
            {settings.disable_scheduler_jobs
              ? 'The scheduler may start jobs on this node again.'
              : 'No job is started on this node until this is taken back. Jobs that run there are asked to stop and run again elsewhere.'}
          </p>
        </Confirm>
      )}
      {asked === 'ban' && (
        <Confirm
          title={settings.banned ? 'Lift the ban?' : `Ban ${address}?`}
          verb={settings.banned ? 'Lift' : 'Ban'}
          danger={!settings.banned}
          act={async () => {
            await setNode(address, 'ban_message', settings.banned ? '' : message);
            await setNode(address, 'banned', !settings.banned);
          }}
          onClose={close}
        >
          {settings.banned ? (
            <p>The node takes part again.</p>
          ) : (
            <div className="dialog-lines">
              <p>The node takes no part any more; its jobs are aborted and run again elsewhere.</p>
              <TextInput
                value={message}
                onUpdate={setMessage}
                placeholder="Why (optional)"
                controlProps={{ 'aria-label': 'Why the node is banned' }}
              />
            </div>
          )}
        </Confirm>
      )}
    </>
  );
}
