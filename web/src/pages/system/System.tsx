/** The cluster as a machine: is it up, does it keep up, what does it complain about. */

import { Link } from 'wouter';
import { get, getOr, list, type Json } from '../../api/client';
import { useLive } from '../../api/live';
import { nodes as askNodes, type Node } from '../../api/nodes';
import { whoami } from '../../api/session';
import { alerts as askAlerts, trees as askTrees } from '../../api/scheduling';
import { Async } from '../../components/Async';
import { Level } from '../../components/ErrorView';
import { Card, Elapsed, Facts, Time, useTitle } from '../../components/Parts';
import { Value } from '../../components/Value';
import { ago, count, words } from '../../model/format';
import { links } from '../../model/links';

interface Service {
  version: string;
  start_time: string;
}

async function service(): Promise<{
  service: Service;
  connected: boolean;
  cluster: string;
  instances: string[];
  user: string;
}> {
  const [running, connected, cluster, instances, user] = await Promise.all([
    get<Service>('//sys/scheduler/orchid/service'),
    getOr('//sys/scheduler/orchid/scheduler/connected', false),
    getOr('//sys/@cluster_name', ''),
    list('//sys/scheduler/instances'),
    whoami().then(session => session?.login ?? ''),
  ]);
  return { service: running, connected, cluster, instances, user };
}

export function System() {
  useTitle('System');
  const about = useLive('any', ['service'], service);
  const alerts = useLive('alerts', ['alerts'], askAlerts);
  const nodes = useLive('nodes', ['nodes'], askNodes);
  const trees = useLive('pools', ['trees'], askTrees);
  return (
    <>
      <h1 className="page__title">System</h1>
      <div className="cards">
        <Card title="Server">
          <Async query={about}>
            {data => (
              <Facts
                items={[
                  ['Cluster', data.cluster],
                  ['Version', data.service.version],
                  ['Address', data.instances.join(', ')],
                  ['Started', <Time key="start" at={data.service.start_time} />],
                  ['Up for', <Elapsed key="up" start={data.service.start_time} />],
                  ['Scheduler', data.connected ? 'connected' : 'not connected'],
                  ['You are', data.user],
                ]}
              />
            )}
          </Async>
        </Card>
        <Card title="Nodes">
          <Async query={nodes}>{all => <NodeSummary nodes={all} />}</Async>
        </Card>
        <Card title="Alerts of the scheduler">
          <Async query={alerts}>
            {all =>
              all.length === 0 ? (
                <p className="secondary">None: it has nothing to complain about.</p>
              ) : (
                all.map((alert, index) => <Level key={index} tree={alert} />)
              )
            }
          </Async>
        </Card>
      </div>
      {trees.data?.names.map(tree => (
        <TreeMetrics key={tree} tree={tree} />
      ))}
    </>
  );
}

function NodeSummary({ nodes }: { nodes: Record<string, Node> }) {
  const all = Object.entries(nodes);
  const states = new Map<string, number>();
  for (const [, node] of all) states.set(node.state, (states.get(node.state) ?? 0) + 1);
  const silent = all
    .filter(([, node]) => node.state === 'online')
    .sort((a, b) => (a[1].last_seen_time ?? '').localeCompare(b[1].last_seen_time ?? ''))[0];
  return (
    <Facts
      items={[
        [
          'In all',
          <Link key="all" href={links.nodes()}>
            {count(all.length)}
          </Link>,
        ],
        ...[...states].map(([state, n]): [string, string] => [words(state), count(n)]),
        [
          'Longest silent',
          silent !== undefined && (
            <>
              <Link href={links.node(silent[0])}>{silent[0]}</Link>, {ago(silent[1].last_seen_time)}
            </>
          ),
        ],
        ['Jobs', count(all.reduce((sum, [, node]) => sum + (node.running_job_count ?? 0), 0))],
      ]}
    />
  );
}

function TreeMetrics({ tree }: { tree: string }) {
  const metrics = useLive('pools', ['metrics', tree], () =>
    getOr<Json>(`//sys/scheduler/orchid/scheduler/pool_trees/${tree}/metrics`, null),
  );
  if (metrics.data === undefined || metrics.data === null) return null;
  return (
    <>
      <h2 className="card__title">Figures of the scheduler in tree {tree}</h2>
      <Value value={metrics.data} depth={2} label={`Figures of tree ${tree}`} />
    </>
  );
}
