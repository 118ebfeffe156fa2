/** What a job was given to read, and what it was reading when it failed: the beginning of it, and a way to all. */

import { Switch } from '@gravity-ui/uikit';
import { useState } from 'react';
import { useOnce } from '../../api/live';
import { beginningOfRows, rowsUrl, type Job, type RowsOfJob } from '../../api/operations';
import { Async } from '../../components/Async';
import { bytes } from '../../model/format';

const WORDS: Record<RowsOfJob, { download: string; none: string }> = {
  input: { download: 'Download all of its input', none: 'It reads no tables.' },
  fail_context: {
    download: 'Download what it was reading when it failed',
    none: 'Nothing is kept of what it was reading: it has not failed, or had nothing to read.',
  },
};

export function JobRows({ operation, job, rows }: { operation: string; job: Job; rows: RowsOfJob }) {
  const [wrap, setWrap] = useState(true);
  const there = has(job, rows);
  const beginning = useOnce(
    ['rows', rows, operation, job.id],
    () => beginningOfRows(operation, job.id, rows),
    there,
  );
  if (!there) return <p className="secondary">{WORDS[rows].none}</p>;
  return (
    <Async query={beginning}>
      {({ text, size, isAll }) => (
        <>
          <div className="toolbar">
            <Switch checked={wrap} onUpdate={setWrap}>
              Wrap lines
            </Switch>
            <div className="toolbar__space" />
            <a href={rowsUrl(operation, job.id, rows)} download={`${job.id}.${rows}`}>
              {WORDS[rows].download}
            </a>
          </div>
          {text === undefined ? (
            <p className="secondary">It is in a binary format.</p>
          ) : text === '' ? (
            <p className="secondary">There are no rows.</p>
          ) : (
            <pre className={wrap ? 'pre' : 'pre pre_unwrapped'} tabIndex={0}>
              {text}
            </pre>
          )}
          {!isAll && <p className="secondary">This is the beginning, {bytes(size)} of it.</p>}
        </>
      )}
    </Async>
  );
}

/** Is there anything to be shown of this job? */
export function has(job: Job, rows: RowsOfJob): boolean {
  return rows === 'input' ? job.type !== 'vanilla' : job.fail_context_size !== undefined;
}
