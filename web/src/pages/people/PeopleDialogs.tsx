/** Dialogs that make, change and remove users and groups. */

import { TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import {
  changeMembers,
  createSubject,
  removeSubject,
  setBanned,
  setPassword,
  type Group,
  type User,
} from '../../api/subjects';
import { Confirm } from '../../components/Confirm';
import { Subjects } from '../../components/Subjects';

export type Asked =
  | { what: 'create'; type: 'user' | 'group' }
  | { what: 'remove'; type: 'user' | 'group'; name: string }
  | { what: 'ban'; user: User }
  | { what: 'password'; name: string }
  | { what: 'members'; group: Group };

export function CreateSubject({ type, onClose }: { type: 'user' | 'group'; onClose: () => void }) {
  const [name, setName] = useState('');
  return (
    <Confirm
      title={`New ${type}`}
      verb="Create"
      disabled={name.trim() === ''}
      act={() => createSubject(type, name.trim())}
      onClose={onClose}
    >
      <div className="form">
        <label htmlFor="subject-name">Name</label>
        <TextInput id="subject-name" value={name} onUpdate={setName} autoFocus autoComplete="off" />
      </div>
      {type === 'user' && (
        <p className="secondary">Nobody can sign in as this user before it has a password or a token.</p>
      )}
    </Confirm>
  );
}

export function RemoveSubject({
  type,
  name,
  onClose,
}: {
  type: 'user' | 'group';
  name: string;
  onClose: () => void;
}) {
  return (
    <Confirm
      title={`Remove the ${type} ${name}?`}
      verb="Remove"
      danger
      act={() => removeSubject(type, name)}
      onClose={onClose}
    >
      <p>
        {type === 'user'
          ? 'Tokens, password and sessions go too. Operations stay as they are.'
          : 'What its members had only by this group they have no more.'}
      </p>
    </Confirm>
  );
}

export function Ban({ user, onClose }: { user: User; onClose: () => void }) {
  return (
    <Confirm
      title={user.banned ? `Lift the ban of ${user.name}?` : `Ban ${user.name}?`}
      verb={user.banned ? 'Lift' : 'Ban'}
      danger={!user.banned}
      act={() => setBanned(user.name, !user.banned)}
      onClose={onClose}
    >
      <p>
        {user.banned
          ? 'The server listens to this user again.'
          : 'The server refuses everything that this user asks. Operations go on.'}
      </p>
    </Confirm>
  );
}

export function Password({ user, onClose }: { user: string; onClose: () => void }) {
  const [password, setText] = useState('');
  const [again, setAgain] = useState('');
  const differ = again !== '' && again !== password;
  return (
    <Confirm
      title={`Password of ${user}`}
      verb="Set"
      disabled={password === '' || again !== password}
      act={() => setPassword(user, password)}
      onClose={onClose}
    >
      <div className="form">
        <label htmlFor="password-new">New password</label>
        <TextInput
          id="password-new"
          type="password"
          value={password}
          onUpdate={setText}
          autoComplete="new-password"
          autoFocus
        />
        <label htmlFor="password-again">Once more</label>
        <TextInput
          id="password-again"
          type="password"
          value={again}
          onUpdate={setAgain}
          autoComplete="new-password"
          validationState={differ ? 'invalid' : undefined}
          errorMessage={differ ? 'These are two different passwords' : undefined}
        />
      </div>
      <p className="secondary">Sessions that began with another password end.</p>
    </Confirm>
  );
}

export function ChangeMembers({ group, onClose }: { group: Group; onClose: () => void }) {
  const [members, setMembers] = useState(group.members);
  const nothing = [...members].sort().join() === [...group.members].sort().join();
  return (
    <Confirm
      title={`Members of ${group.name}`}
      verb="Save"
      disabled={nothing}
      act={() => changeMembers(group.name, group.members, members)}
      onClose={onClose}
    >
      <Subjects label="Members" value={members} onUpdate={setMembers} except={group.name} />
    </Confirm>
  );
}
