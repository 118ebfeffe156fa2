/** What can be done to a job. */

import { Button } from '@gravity-ui/uikit';
import { useState } from 'react';
import { abandonJob, abortJob, type Job } from '../../api/operations';
import { Confirm } from '../../components/Confirm';
import { Copy } from '../../components/Parts';
import { OpenedMenu, RowMenu } from '../../components/RowMenu';

type Action = 'abort' | 'interrupt' | 'abandon' | 'shell';

const QUESTIONS: Record<
  Exclude<Action, 'shell'>,
  { title: string; verb: string; text: string; act: (job: Job) => Promise<unknown> }
> = {
  abort: {
    title: 'Abort the job?',
    verb: 'Abort',
    text: 'Its work is lost. The operation runs it again under a new id.',
    act: job => abortJob(job.id),
  },
  interrupt: {
    title: 'Interrupt the job?',
    verb: 'Interrupt',
    text: 'It is asked to stop and has 10 seconds to save its work; then it is aborted. The operation runs it again.',
    act: job => abortJob(job.id, 10_000),
  },
  abandon: {
    title: 'Abandon the job?',
    verb: 'Abandon',
    text: 'It counts as completed without having been. What it would have produced is missing.',
    act: job => abandonJob(job.id),
  },
};

const NAMES: Record<Action, string> = {
  shell: 'Shell',
  interrupt: 'Interrupt',
  abandon: 'Abandon',
  abort: 'Abort',
};
const ACTIONS: Action[] = ['shell', 'interrupt', 'abandon', 'abort'];

const isRunning = (job: Job): boolean => job.state === 'running' || job.state === 'waiting';

export function JobMenu({ job }: { job: Job }) {
  if (!isRunning(job)) return null;
  return <RowMenu label={menuOf(job)}>{() => <Menu job={job} />}</RowMenu>;
}

const menuOf = (job: Job): string => `Actions for job ${job.id}`;

function Menu({ job }: { job: Job }) {
  const [asked, setAsked] = useState<Action | undefined>(undefined);
  return (
    <>
      <OpenedMenu
        label={menuOf(job)}
        items={ACTIONS.map(action => ({
          text: NAMES[action],
          action: () => setAsked(action),
          ...(action === 'abort' ? { theme: 'danger' as const } : {}),
        }))}
      />
      {asked !== undefined && <Question job={job} action={asked} onClose={() => setAsked(undefined)} />}
    </>
  );
}

export function JobButtons({ job }: { job: Job }) {
  const [asked, setAsked] = useState<Action | undefined>(undefined);
  if (!isRunning(job)) return null;
  return (
    <>
      {ACTIONS.map(action => (
        <Button
          key={action}
          view={action === 'abort' ? 'outlined-danger' : 'outlined'}
          onClick={() => setAsked(action)}
        >
          {NAMES[action]}
        </Button>
      ))}
      {asked !== undefined && <Question job={job} action={asked} onClose={() => setAsked(undefined)} />}
    </>
  );
}

function Question({ job, action, onClose }: { job: Job; action: Action; onClose: () => void }) {
  if (action === 'shell') {
    const command = `yt --proxy ${window.location.host} run-job-shell ${job.id}`;
    return (
      <Confirm title="A shell in the job" verb="Done" act={() => Promise.resolve()} onClose={onClose}>
        <p>Run this in a terminal:</p>
        <pre className="pre copyable">
          {command}
          <span className="copyable__button">
            <Copy text={command} what="command" />
          </span>
        </pre>
      </Confirm>
    );
  }
  const { title, verb, text, act } = QUESTIONS[action];
  return (
    <Confirm title={title} verb={verb} danger act={() => act(job)} onClose={onClose}>
      <p>{text}</p>
    </Confirm>
  );
}
