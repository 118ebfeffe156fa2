/** Jobs of an operation: completed, running, waiting, with the failed ones in words. */

import type { JobCounts } from '../api/operations';
import { count } from '../model/format';
import { progressOf } from '../model/operations';
import { StackBar } from './Bar';

interface Props {
  jobs: JobCounts | undefined;
  /** Nothing runs although there is something to run. */
  waits?: boolean;
  /** What never ran will not run any more. */
  finished?: boolean;
}

export function JobsBar({ jobs, waits = false, finished = false }: Props) {
  if (jobs === undefined) return null;
  const { completed, running } = progressOf(jobs);
  const problems = [
    jobs.failed > 0 && `${count(jobs.failed)} failed`,
    jobs.lost > 0 && `${count(jobs.lost)} lost`,
  ].filter(text => text !== false);
  const doing = [
    jobs.running > 0 && `${count(jobs.running)} running`,
    waits ? 'waits for resources' : !finished && jobs.pending > 0 && `${count(jobs.pending)} pending`,
  ].filter(text => text !== false);
  return (
    <div className="two-lines jobs-bar">
      <StackBar
        segments={[
          { kind: 'good', part: completed, label: `${count(jobs.completed)} completed` },
          { kind: 'usage', part: running, label: `${count(jobs.running)} running` },
        ]}
      />
      <span className="clip jobs-bar__text">
        {count(jobs.completed)} of {count(jobs.total)}
        {doing.length > 0 && <span className="secondary">, {doing.join(', ')}</span>}
        {jobs.aborted > 0 && <span className="warn">, {count(jobs.aborted)} aborted</span>}
        {problems.length > 0 && <span className="bad">, {problems.join(', ')}</span>}
      </span>
    </div>
  );
}
