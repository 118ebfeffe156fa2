/** A list of access: to be read as a table, to be changed in a dialog. */

import { Plus, TrashBin } from '@gravity-ui/icons';
import { Button, Icon, Select } from '@gravity-ui/uikit';
import { useState } from 'react';
import { aceProblem, INHERITANCE, newAce, USUAL_INHERITANCE, type Ace } from '../model/acl';
import { words } from '../model/format';
import { Confirm } from './Confirm';
import { Subjects } from './Subjects';

interface TableProps {
  label: string;
  acl: readonly Ace[];
  empty: string;
  /** Places that the entries are from, instead of where they count. */
  from?: readonly (string | undefined)[];
}

export function AclTable({ label, acl, empty, from }: TableProps) {
  if (acl.length === 0) return <p className="secondary">{empty}</p>;
  return (
    <div className="sheet-box" tabIndex={0}>
      <table className="sheet" aria-label={label}>
        <thead>
          <tr>
            <th>Users and groups</th>
            <th>may or may not</th>
            <th>do</th>
            <th>{from === undefined ? 'where' : 'says'}</th>
          </tr>
        </thead>
        <tbody>
          {acl.map((ace, index) => (
            <tr key={index}>
              <td className="acl__subjects">{ace.subjects.join(', ')}</td>
              <td className={ace.action === 'deny' ? 'bad' : ''}>
                {ace.action === 'deny' ? 'may not' : 'may'}
              </td>
              <td className="wide">{ace.permissions.map(words).join(', ')}</td>
              <td className="secondary">
                {from === undefined ? INHERITANCE[ace.inheritance_mode ?? USUAL_INHERITANCE] : from[index]}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface EditorProps {
  title: string;
  acl: readonly Ace[];
  permissions: readonly string[];
  /** Operations have nothing below them. */
  inherited?: boolean;
  act: (acl: Ace[]) => Promise<unknown>;
  onClose: () => void;
}

const ACTIONS = [
  { value: 'allow', content: 'may' },
  { value: 'deny', content: 'may not' },
];

export function AclEditor({ title, acl, permissions, inherited = true, act, onClose }: EditorProps) {
  // Keys of their own: an entry in the middle may go.
  const [entries, setEntries] = useState(() => acl.map((ace, key) => ({ key, ace })));
  const [next, setNext] = useState(acl.length);
  const put = (key: number, change: Partial<Ace>) =>
    setEntries(all =>
      all.map(one => (one.key === key ? { key, ace: { ...one.ace, ...change } as Ace } : one)),
    );
  const problem = entries.map(({ ace }) => aceProblem(ace)).find(text => text !== undefined);
  const now = entries.map(({ ace }) => ace);
  const nothing = JSON.stringify(now) === JSON.stringify(acl);
  return (
    <Confirm
      title={title}
      verb="Save"
      size="l"
      disabled={problem !== undefined || nothing}
      act={() => act(now)}
      onClose={onClose}
    >
      <div className="acl">
        {entries.map(({ key, ace }, index) => (
          <fieldset key={key} className="acl__entry">
            <legend className="visually-hidden">Entry {index + 1}</legend>
            <Subjects
              label={`Users and groups of entry ${index + 1}`}
              value={ace.subjects}
              onUpdate={subjects => put(key, { subjects })}
            />
            <Select
              aria-label={`May or may not, of entry ${index + 1}`}
              width="max"
              value={[ace.action]}
              options={ACTIONS}
              onUpdate={([action]) => put(key, { action: action === 'deny' ? 'deny' : 'allow' })}
            />
            <Select
              multiple
              aria-label={`Permissions of entry ${index + 1}`}
              width="max"
              value={ace.permissions}
              options={[...new Set([...permissions, ...ace.permissions])].map(value => ({
                value,
                content: words(value),
              }))}
              onUpdate={chosen => put(key, { permissions: chosen })}
            />
            {inherited && (
              <Select
                aria-label={`Where entry ${index + 1} counts`}
                width="max"
                value={[ace.inheritance_mode ?? USUAL_INHERITANCE]}
                options={Object.entries(INHERITANCE).map(([value, content]) => ({ value, content }))}
                onUpdate={([mode]) => put(key, { inheritance_mode: mode ?? USUAL_INHERITANCE })}
              />
            )}
            <Button
              view="flat"
              aria-label={`Remove entry ${index + 1}`}
              onClick={() => setEntries(all => all.filter(one => one.key !== key))}
            >
              <Icon data={TrashBin} />
            </Button>
          </fieldset>
        ))}
        {problem !== undefined && <p className="secondary">{problem}</p>}
        <div>
          <Button
            view="outlined"
            onClick={() => {
              setEntries(all => [...all, { key: next, ace: newAce(permissions[0] ?? 'read') }]);
              setNext(next + 1);
            }}
          >
            <Icon data={Plus} />
            Add an entry
          </Button>
        </div>
      </div>
    </Confirm>
  );
}
