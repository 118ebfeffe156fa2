/** One operation: what it does, how it goes, and why. */

import type { Json } from '../../api/client';
import { useParams } from 'wouter';
import { useLive } from '../../api/live';
import { getAttributes, getOperation, type Operation } from '../../api/operations';
import { Allowed } from '../../api/session-context';
import { Async } from '../../components/Async';
import { FavouriteStar } from '../../components/Favourites';
import { JobsBar } from '../../components/JobsBar';
import { Copy, Crumbs, Elapsed, Mark, PoolLink, State, Time, useTitle } from '../../components/Parts';
import { Tabs, useTab, type TabItem } from '../../components/Tabs';
import { Value } from '../../components/Value';
import { number } from '../../model/format';
import { links } from '../../model/links';
import { isFinished, placesOf, titleOf, waitsForResources } from '../../model/operations';
import { Details } from './Details';
import { Jobs } from './Jobs';
import { OperationButtons } from './OperationActions';
import { OperationPreemptions } from './OperationPreemptions';
import { Specification } from './Specification';
import { Statistics } from './Statistics';
import { Timeline } from './Timeline';
import { Why } from './Why';

const TABS: TabItem[] = [
  { id: 'details', title: 'Details' },
  { id: 'specification', title: 'Specification' },
  { id: 'jobs', title: 'Jobs' },
  { id: 'timeline', title: 'Timeline' },
  { id: 'statistics', title: 'Statistics' },
  { id: 'why', title: 'Why' },
  { id: 'preemptions', title: 'Preemptions' },
  { id: 'attributes', title: 'Attributes' },
];

export function OperationPage() {
  const { id = '' } = useParams<{ id: string }>();
  const tab = useTab(TABS);
  const operation = useLive(`operation/${id}`, ['operation', id], () => getOperation(id));
  useTitle(operation.data === undefined ? id : titleOf(operation.data));
  return (
    <Async query={operation}>
      {data => (
        <>
          <Head operation={data} />
          <Tabs items={TABS} tab={tab}>
            {tab === 'details' && <Details operation={data} />}
            {tab === 'specification' && <Specification id={data.id} />}
            {tab === 'jobs' && <Jobs operation={data} />}
            {tab === 'timeline' && <Timeline operation={data} />}
            {tab === 'statistics' && <Statistics tree={data.progress?.job_statistics_v2 ?? {}} />}
            {tab === 'why' && <Why id={data.id} />}
            {tab === 'preemptions' && <OperationPreemptions operation={data} />}
            {tab === 'attributes' && <Attributes id={data.id} />}
          </Tabs>
        </>
      )}
    </Async>
  );
}

function Head({ operation }: { operation: Operation }) {
  const alias = operation.brief_spec?.alias;
  return (
    <>
      <Crumbs items={[{ title: 'Operations', href: links.operations() }, { title: operation.id }]} />
      <div className="page__head">
        <h1 className="page__title">{titleOf(operation)}</h1>
        <FavouriteStar href={links.operation(operation.id)} title={titleOf(operation)} kind="operation" />
        <State state={operation.state} suspended={operation.suspended} />
        {operation.suspended && operation.state !== 'running' && <Mark tone="warning">suspended</Mark>}
        {waitsForResources(operation) && <Mark tone="warning">waits for resources</Mark>}
        <div className="page__actions">
          <Allowed to="manage" operation={operation.id}>
            <OperationButtons operation={operation} />
          </Allowed>
        </div>
        <div className="page__subtitle">
          <span className="nowrap">
            <span className="mono">{operation.id}</span> <Copy text={operation.id} what="id" />
          </span>
          {alias !== undefined && (
            <span className="nowrap">
              {alias} <Copy text={alias} what="alias" />
            </span>
          )}
          <span>{operation.type}</span>
          <span>by {operation.authenticated_user}</span>
          {placesOf(operation).map(({ tree, pool, weight }) => (
            <span key={tree}>
              in <PoolLink tree={tree} pool={pool} />
              {weight === undefined ? '' : `, weight ${number(weight)}`}
              {placesOf(operation).length > 1 && <span className="secondary"> ({tree})</span>}
            </span>
          ))}
          <span>
            started <Time at={operation.start_time} />
          </span>
          {operation.finish_time !== undefined && (
            <span>
              ended <Time at={operation.finish_time} />
            </span>
          )}
          <span>
            {isFinished(operation.state) ? 'took ' : 'for '}
            <Elapsed start={operation.start_time} end={operation.finish_time} />
          </span>
        </div>
        <div className="head-progress">
          <JobsBar
            jobs={operation.brief_progress?.jobs}
            waits={waitsForResources(operation)}
            finished={isFinished(operation.state)}
          />
        </div>
      </div>
    </>
  );
}

function Attributes({ id }: { id: string }) {
  const attributes = useLive<Json>(`operation/${id}`, ['operation attributes', id], () => getAttributes(id));
  return (
    <Async query={attributes}>
      {value => <Value value={value} depth={1} label="Attributes of the operation" />}
    </Async>
  );
}
