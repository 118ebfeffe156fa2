/** Who lost what to whom. */

import { Link } from 'wouter';
import type { Preemption } from '../api/operations';
import { shortId, words } from '../model/format';
import { links } from '../model/links';
import { resourcesInWords } from '../model/resources';
import { DataTable, type TableColumn } from './DataTable';
import { Mark, OperationLink, PoolLink, Time } from './Parts';

const COLUMNS: TableColumn<Preemption>[] = [
  { id: 'time', title: 'Time', width: 150, cell: p => <Time at={p.time} /> },
  { id: 'victim', title: 'Lost by', width: 130, cell: p => <OperationLink id={p.operation_id} /> },
  { id: 'pool', title: 'in pool', width: 150, cell: p => <PoolLink tree={p.pool_tree} pool={p.pool} /> },
  {
    id: 'resources',
    title: 'What',
    width: 230,
    cell: p => <span className="clip">{resourcesInWords(p.resources)}</span>,
  },
  {
    id: 'winner',
    title: 'Given to',
    width: 130,
    cell: p =>
      p.preempted_for == null ? (
        <span className="secondary">–</span>
      ) : (
        <OperationLink id={p.preempted_for.operation_id} />
      ),
  },
  {
    id: 'stage',
    title: 'Stage',
    width: 190,
    cell: p => <span className="clip">{words(p.stage ?? p.preemption_kind)}</span>,
  },
  {
    id: 'group',
    title: 'Victim was',
    width: 190,
    cell: p => (
      <>
        <span className="clip">{words(p.group)}</span>
        {p.properly_starving === false && (
          <Mark title="It had the right only through its pools">improper</Mark>
        )}
      </>
    ),
  },
  {
    id: 'node',
    title: 'Node',
    width: 150,
    cell: p => (
      <Link href={links.node(p.node)} className="clip" title={p.node}>
        {p.node}
      </Link>
    ),
  },
  {
    id: 'job',
    title: 'Job',
    width: 110,
    cell: p =>
      p.job_id === undefined ? null : (
        <Link href={links.job(p.operation_id, p.job_id)} className="mono" title={p.preemption_reason}>
          {shortId(p.job_id)}
        </Link>
      ),
  },
];

export function PreemptionTable({ rows, empty }: { rows: Preemption[]; empty: string }) {
  return (
    <DataTable
      label="Preemptions"
      columns={COLUMNS}
      rows={rows}
      rowKey={p => `${p.time} ${p.allocation_id}`}
      empty={empty}
    />
  );
}
