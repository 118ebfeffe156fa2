/** Who there is: users with their groups, groups with their members, and what administrators do with them. */

import { Plus } from '@gravity-ui/icons';
import { Button, Icon, TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import { Link } from 'wouter';
import { useLive } from '../../api/live';
import { Allowed, useMay, useSession } from '../../api/session-context';
import {
  GROUPS,
  groups as askGroups,
  USERS,
  users as askUsers,
  type Group,
  type User,
} from '../../api/subjects';
import { Async } from '../../components/Async';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Mark, useTitle } from '../../components/Parts';
import { OpenedMenu, RowMenu } from '../../components/RowMenu';
import { Tabs, useTab, type TabItem } from '../../components/Tabs';
import { links } from '../../model/links';
import { useUrlState } from '../../model/urlState';
import { Ban, ChangeMembers, CreateSubject, Password, RemoveSubject, type Asked } from './PeopleDialogs';

const TABS: TabItem[] = [
  { id: 'users', title: 'Users' },
  { id: 'groups', title: 'Groups' },
];

export function People() {
  useTitle('People');
  const tab = useTab(TABS);
  const [asked, setAsked] = useState<Asked | undefined>(undefined);
  const close = () => setAsked(undefined);
  const { auth } = useSession();
  return (
    <>
      <div className="page__head">
        <h1 className="page__title">People</h1>
        {!auth && <span className="secondary">This server asks nobody who they are: everybody is root.</span>}
      </div>
      <Tabs items={TABS} tab={tab}>
        {tab === 'users' ? <Users onAsk={setAsked} /> : <Groups onAsk={setAsked} />}
      </Tabs>
      {asked?.what === 'create' && <CreateSubject type={asked.type} onClose={close} />}
      {asked?.what === 'remove' && <RemoveSubject type={asked.type} name={asked.name} onClose={close} />}
      {asked?.what === 'ban' && <Ban user={asked.user} onClose={close} />}
      {asked?.what === 'password' && <Password user={asked.name} onClose={close} />}
      {asked?.what === 'members' && <ChangeMembers group={asked.group} onClose={close} />}
    </>
  );
}

interface ListProps {
  onAsk: (asked: Asked) => void;
}

function Users({ onAsk }: ListProps) {
  const users = useLive('any', ['users'], askUsers);
  return (
    <>
      <Tools type="user" path={USERS} onAsk={onAsk} />
      <Async query={users}>
        {all => <Found label="Users" all={all} columns={userColumns(onAsk)} type="user" />}
      </Async>
    </>
  );
}

function Groups({ onAsk }: ListProps) {
  const groups = useLive('any', ['groups'], askGroups);
  return (
    <>
      <Tools type="group" path={GROUPS} onAsk={onAsk} />
      <Async query={groups}>
        {all => <Found label="Groups" all={all} columns={groupColumns(onAsk)} type="group" />}
      </Async>
    </>
  );
}

function Tools({ type, path, onAsk }: ListProps & { type: 'user' | 'group'; path: string }) {
  const [url, change] = useUrlState();
  return (
    <div className="toolbar">
      <TextInput
        className="toolbar__filter"
        value={url.get('filter') ?? ''}
        onUpdate={filter => change({ filter })}
        placeholder="Filter by name"
        hasClear
        controlProps={{ 'aria-label': `Filter ${type}s by name` }}
      />
      <div className="toolbar__space" />
      <Allowed to="write" at={path}>
        <Button view="action" onClick={() => onAsk({ what: 'create', type })}>
          <Icon data={Plus} />
          Create {type}
        </Button>
      </Allowed>
    </div>
  );
}

/** Those with the looked for text in the name. */
function Found<R extends { name: string }>({
  label,
  all,
  columns,
  type,
}: {
  label: string;
  all: R[];
  columns: TableColumn<R>[];
  type: string;
}) {
  const [url] = useUrlState();
  const filter = (url.get('filter') ?? '').toLowerCase();
  return (
    <DataTable
      label={label}
      columns={columns}
      rows={all.filter(({ name }) => name.toLowerCase().includes(filter))}
      rowKey={({ name }) => name}
      empty={`No ${type} has such a name.`}
    />
  );
}

const userColumns = (onAsk: ListProps['onAsk']): TableColumn<User>[] => [
  {
    id: 'name',
    title: 'User',
    width: 260,
    cell: user => (
      <>
        <Link href={links.operations({ user: user.name })} className="clip" title={user.name}>
          {user.name}
        </Link>
        {user.banned && <Mark tone="danger">banned</Mark>}
        <span className="row-menu">
          <RowMenu label={`Actions for ${user.name}`}>{() => <UserMenu user={user} onAsk={onAsk} />}</RowMenu>
        </span>
      </>
    ),
  },
  {
    id: 'groups',
    title: 'In groups',
    width: 520,
    grow: true,
    cell: user => (
      <span className="clip" title={user.groups.join(', ')}>
        {user.groups.join(', ')}
      </span>
    ),
  },
];

function UserMenu({ user, onAsk }: ListProps & { user: User }) {
  const { login } = useSession();
  const path = `${USERS}/${user.name}`;
  const administers = useMay({ to: 'administer', at: path });
  const writes = useMay({ to: 'write', at: path });
  const items = [
    {
      text: 'Set a password',
      action: () => onAsk({ what: 'password', name: user.name }),
      hidden: administers !== true && login !== user.name,
    },
    {
      text: user.banned ? 'Lift the ban' : 'Ban',
      action: () => onAsk({ what: 'ban', user }),
      hidden: writes !== true,
    },
    {
      text: 'Remove',
      theme: 'danger' as const,
      action: () => onAsk({ what: 'remove', type: 'user', name: user.name }),
      hidden: writes !== true,
    },
  ].filter(item => !item.hidden);
  return <OpenedMenu label={`Actions for ${user.name}`} items={items} disabled={items.length === 0} />;
}

/** Their members are no list: everybody, and everybody but guests. */
const WITHOUT_LIST = ['everyone', 'users'];

const groupColumns = (onAsk: ListProps['onAsk']): TableColumn<Group>[] => [
  {
    id: 'name',
    title: 'Group',
    width: 260,
    cell: group => (
      <>
        <span className="clip" title={group.name}>
          {group.name}
        </span>
        <span className="row-menu">
          <RowMenu label={`Actions for ${group.name}`} disabled={WITHOUT_LIST.includes(group.name)}>
            {() => <GroupMenu group={group} onAsk={onAsk} />}
          </RowMenu>
        </span>
      </>
    ),
  },
  {
    id: 'members',
    title: 'Members',
    width: 520,
    grow: true,
    cell: ({ name, members }) => (
      <span className={members.length === 0 ? 'secondary clip' : 'clip'} title={members.join(', ')}>
        {WITHOUT_LIST.includes(name)
          ? name === 'everyone'
            ? 'everybody'
            : 'everybody but guest'
          : members.length === 0
            ? 'nobody'
            : members.join(', ')}
      </span>
    ),
  },
];

function GroupMenu({ group, onAsk }: ListProps & { group: Group }) {
  const writes = useMay({ to: 'write', at: `${GROUPS}/${group.name}` });
  const items = [
    { text: 'Change members', action: () => onAsk({ what: 'members', group }) },
    {
      text: 'Remove',
      theme: 'danger' as const,
      action: () => onAsk({ what: 'remove', type: 'group', name: group.name }),
    },
  ];
  const offered = writes === true ? items : [];
  return <OpenedMenu label={`Actions for ${group.name}`} items={offered} disabled={offered.length === 0} />;
}
