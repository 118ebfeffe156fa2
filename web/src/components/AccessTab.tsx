/** Who may do what with something in the tree: its own list, what comes from above, and a question. */

import { Button, Select, TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import { useLive } from '../api/live';
import { Allowed } from '../api/session-context';
import { access as askAccess, decision, setAcl, type Decision } from '../api/subjects';
import { words } from '../model/format';
import { AclEditor, AclTable } from './AclEditor';
import { Async } from './Async';
import { ErrorView } from './ErrorView';
import { Card } from './Parts';

interface Props {
  path: string;
  permissions: readonly string[];
}

export function AccessTab({ path, permissions }: Props) {
  const [editing, setEditing] = useState(false);
  const access = useLive(['pools', 'any'], ['access', path], () => askAccess(path));
  return (
    <Async query={access}>
      {({ acl, above }) => (
        <>
          <Card
            title="Its own list"
            extra={
              <Allowed to="administer" at={path}>
                <span className="card__tools">
                  <Button view="outlined" onClick={() => setEditing(true)}>
                    Edit
                  </Button>
                </span>
              </Allowed>
            }
          >
            <AclTable
              label="Its own list"
              acl={acl}
              empty="It has no entry of its own: what is above decides."
            />
          </Card>
          <Card title="From above, nearest first">
            <AclTable
              label="From above"
              acl={above.map(({ ace }) => ace)}
              from={above.map(one => one.from)}
              empty="Nothing from above counts here."
            />
          </Card>
          <Check path={path} permissions={permissions} />
          {editing && (
            <AclEditor
              title={`Access to ${path}`}
              acl={acl}
              permissions={permissions}
              act={changed => setAcl(path, changed)}
              onClose={() => setEditing(false)}
            />
          )}
        </>
      )}
    </Async>
  );
}

function Check({ path, permissions }: Props) {
  const [user, setUser] = useState('');
  const [permission, setPermission] = useState(permissions[0] ?? 'read');
  const [said, setSaid] = useState<{ user: string; permission: string; answer: Decision } | undefined>();
  const [error, setError] = useState<unknown>(null);
  const ask = async () => {
    setError(null);
    setSaid(undefined);
    try {
      setSaid({ user, permission, answer: await decision(user.trim(), permission, path) });
    } catch (refusal) {
      setError(refusal);
    }
  };
  return (
    <Card title="May they?">
      <form
        className="toolbar"
        onSubmit={event => {
          event.preventDefault();
          void ask();
        }}
      >
        <TextInput
          className="toolbar__filter"
          value={user}
          onUpdate={setUser}
          placeholder="User"
          controlProps={{ 'aria-label': 'User to ask about' }}
        />
        <Select
          aria-label="Permission to ask about"
          value={[permission]}
          options={permissions.map(value => ({ value, content: words(value) }))}
          onUpdate={([chosen]) => setPermission(chosen ?? permission)}
        />
        <Button type="submit" view="outlined" disabled={user.trim() === ''}>
          Ask
        </Button>
      </form>
      {error !== null && <ErrorView error={error} />}
      {said !== undefined && (
        <p role="status" className={said.answer.action === 'allow' ? 'good' : 'bad'}>
          {said.user} {said.answer.action === 'allow' ? 'may' : 'may not'} {words(said.permission)}:{' '}
          {said.answer.subject_name === undefined
            ? said.answer.action === 'allow'
              ? 'superusers may do everything'
              : 'no entry allows it'
            : `an entry for ${said.answer.subject_name} at ${said.answer.object_name ?? path}`}
        </p>
      )}
    </Card>
  );
}
