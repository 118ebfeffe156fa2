/** What can be done to an operation, with a question before anything is lost. */

import { Button, Checkbox, TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import { useLive } from '../../api/live';
import {
  abort,
  complete,
  getOperation,
  resume,
  setOperationAcl,
  suspend,
  type OperationSummary,
} from '../../api/operations';
import { AclEditor } from '../../components/AclEditor';
import { Confirm } from '../../components/Confirm';
import { OpenedMenu, RowMenu } from '../../components/RowMenu';
import { OPERATION_PERMISSIONS } from '../../model/acl';
import { plural } from '../../model/format';
import { isEnding, titleOf } from '../../model/operations';
import { ParametersEditor } from './ParametersEditor';

type Action = 'abort' | 'suspend' | 'resume' | 'complete' | 'parameters' | 'access';

const NAMES: Record<Action, string> = {
  parameters: 'Pool, weight, limits',
  access: 'Access',
  suspend: 'Suspend',
  resume: 'Resume',
  complete: 'Complete',
  abort: 'Abort',
};

/** Those that make sense in its state. */
function possible(operation: OperationSummary): Action[] {
  if (isEnding(operation.state)) return [];
  return ['parameters', 'access', operation.suspended ? 'resume' : 'suspend', 'complete', 'abort'];
}

const menuOf = (title: string): string => `Actions for ${title}`;

/** For rows that know no more than the id: the rest is asked for when the menu is opened. */
export function OperationMenuById({ id, title }: { id: string; title: string }) {
  return <RowMenu label={menuOf(title)}>{() => <AskedMenu id={id} title={title} />}</RowMenu>;
}

function AskedMenu({ id, title }: { id: string; title: string }) {
  const { data } = useLive(`operation/${id}`, ['operation', id], () => getOperation(id));
  if (data !== undefined) return <Menu operation={data} />;
  return <Button view="flat" size="s" loading aria-label={menuOf(title)} />;
}

export function OperationMenu({ operation }: { operation: OperationSummary }) {
  return (
    <RowMenu label={menuOf(titleOf(operation))} disabled={possible(operation).length === 0}>
      {() => <Menu operation={operation} />}
    </RowMenu>
  );
}

function Menu({ operation }: { operation: OperationSummary }) {
  const [asked, setAsked] = useState<Action | undefined>(undefined);
  const actions = possible(operation);
  return (
    <>
      <OpenedMenu
        label={menuOf(titleOf(operation))}
        disabled={actions.length === 0}
        items={actions.map(action => ({
          text: NAMES[action],
          ...(action === 'abort' ? { theme: 'danger' as const } : {}),
          action: () => setAsked(action),
        }))}
      />
      {asked !== undefined && (
        <Dialogs operation={operation} action={asked} onClose={() => setAsked(undefined)} />
      )}
    </>
  );
}

export function OperationButtons({ operation }: { operation: OperationSummary }) {
  const [asked, setAsked] = useState<Action | undefined>(undefined);
  return (
    <>
      {possible(operation).map(action => (
        <Button
          key={action}
          view={action === 'abort' ? 'outlined-danger' : 'outlined'}
          onClick={() => setAsked(action)}
        >
          {NAMES[action]}
        </Button>
      ))}
      {asked !== undefined && (
        <Dialogs operation={operation} action={asked} onClose={() => setAsked(undefined)} />
      )}
    </>
  );
}

interface DialogProps {
  operation: OperationSummary;
  onClose: () => void;
}

function Dialogs({ action, ...props }: DialogProps & { action: Action }) {
  switch (action) {
    case 'abort':
      return <Abort {...props} />;
    case 'suspend':
      return <Suspend {...props} />;
    case 'access':
      return (
        <AclEditor
          title="Access to the operation"
          acl={props.operation.runtime_parameters?.acl ?? []}
          permissions={OPERATION_PERMISSIONS}
          inherited={false}
          act={acl => setOperationAcl(props.operation.id, acl)}
          onClose={props.onClose}
        />
      );
    case 'parameters':
      return <ParametersEditor {...props} />;
    case 'resume':
      return (
        <Confirm
          title="Resume the operation?"
          verb="Resume"
          act={() => resume(props.operation.id)}
          onClose={props.onClose}
        >
          <p>Its jobs are started again as its share allows.</p>
        </Confirm>
      );
    case 'complete':
      return (
        <Confirm
          title="Complete the operation now?"
          verb="Complete"
          danger
          act={() => complete(props.operation.id)}
          onClose={props.onClose}
        >
          <p>It ends as if all of its jobs were done. {running(props.operation)} will be aborted.</p>
        </Confirm>
      );
  }
}

const running = (operation: OperationSummary): string =>
  plural(operation.brief_progress?.jobs?.running ?? 0, 'running job');

function Abort({ operation, onClose }: DialogProps) {
  const [message, setMessage] = useState('');
  return (
    <Confirm
      title="Abort the operation?"
      verb="Abort"
      danger
      act={() => abort(operation.id, message)}
      onClose={onClose}
    >
      <div className="dialog-lines">
        <p>
          <b>{titleOf(operation)}</b> ends, and the work of {running(operation)} is lost.
        </p>
        <TextInput
          value={message}
          onUpdate={setMessage}
          placeholder="Why (optional, kept in its result)"
          controlProps={{ 'aria-label': 'Why it is aborted' }}
        />
      </div>
    </Confirm>
  );
}

function Suspend({ operation, onClose }: DialogProps) {
  const [jobs, setJobs] = useState(false);
  return (
    <Confirm
      title="Suspend the operation?"
      verb="Suspend"
      danger={jobs}
      act={() => suspend(operation.id, jobs)}
      onClose={onClose}
    >
      <div className="dialog-lines">
        <p>No new jobs are started until it is resumed.</p>
        <Checkbox checked={jobs} onUpdate={setJobs}>
          Abort {running(operation)} too; their work is lost
        </Checkbox>
      </div>
    </Confirm>
  );
}
