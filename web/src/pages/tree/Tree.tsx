/** The tree of everything: nodes, their values and attributes. */

import { Button, TextInput } from '@gravity-ui/uikit';
import { useEffect, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { useLive } from '../../api/live';
import { Allowed } from '../../api/session-context';
import * as api from '../../api/tree';
import { AccessTab } from '../../components/AccessTab';
import { Async } from '../../components/Async';
import { Confirm } from '../../components/Confirm';
import { DataTable, type TableColumn } from '../../components/DataTable';
import { Copy, Mark, Time, useTitle } from '../../components/Parts';
import { Tabs, useTab, type TabItem } from '../../components/Tabs';
import { Value } from '../../components/Value';
import { NODE_PERMISSIONS } from '../../model/acl';
import { count } from '../../model/format';
import { links } from '../../model/links';
import { isDirectory, normalized, stepsOf } from '../../model/paths';
import { useUrlState } from '../../model/urlState';
import { FileOf, Rows } from './Contents';
import { CreateNode, EditAttribute, EditValue } from './TreeDialogs';

const OF_DIRECTORY: TabItem[] = [
  { id: 'children', title: 'Inside' },
  { id: 'attributes', title: 'Attributes' },
  { id: 'access', title: 'Access' },
];
const OF_TABLE: TabItem[] = [
  { id: 'rows', title: 'Rows' },
  { id: 'attributes', title: 'Attributes' },
  { id: 'access', title: 'Access' },
];
const OF_VALUE: TabItem[] = [
  { id: 'value', title: 'Value' },
  { id: 'attributes', title: 'Attributes' },
  { id: 'access', title: 'Access' },
];

export function Tree() {
  const [url] = useUrlState();
  const path = normalized(url.get('path') ?? '/');
  useTitle(path);
  const type = useLive('any', ['type', path], () => api.typeOf(path));
  return (
    <>
      <h1 className="page__title">Tree</h1>
      <PathField path={path} />
      <Async query={type}>{of => <Place key={path} path={path} type={of} />}</Async>
    </>
  );
}

function PathField({ path }: { path: string }) {
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState(path);
  useEffect(() => setTyped(path), [path]);
  return (
    <>
      <div className="toolbar">
        <TextInput
          className="path-field"
          value={typed}
          onUpdate={setTyped}
          controlProps={{ 'aria-label': 'Path', className: 'mono', spellCheck: false }}
          onKeyDown={event => {
            if (event.key === 'Enter') navigate(links.tree(normalized(typed)));
          }}
        />
        <Button view="outlined" onClick={() => navigate(links.tree(normalized(typed)))}>
          Go
        </Button>
        <Copy text={path} what="path" />
      </div>
      <nav className="crumbs" aria-label="Where this is">
        {stepsOf(path).map((step, index) => (
          <span key={step.path} className="crumbs">
            {index > 1 && <span className="crumbs__separator">/</span>}
            <Link href={links.tree(step.path)}>{step.title}</Link>
          </span>
        ))}
      </nav>
    </>
  );
}

function Place({ path, type }: { path: string; type: string }) {
  const [, navigate] = useLocation();
  const directory = isDirectory(type);
  const items = directory ? OF_DIRECTORY : type === 'table' ? OF_TABLE : OF_VALUE;
  const tab = useTab(items);
  const [asked, setAsked] = useState<'create' | 'remove' | 'value' | undefined>(undefined);
  const close = () => setAsked(undefined);
  const parent = stepsOf(path).at(-2)?.path ?? '/';
  const orchid = type === 'orchid' || path.includes('/orchid');
  return (
    <>
      <div className="page__head">
        <Mark>{type}</Mark>
        <div className="page__actions">
          <Allowed to="write" at={path}>
            {directory && !orchid && (
              <Button view="outlined" onClick={() => setAsked('create')}>
                Create inside
              </Button>
            )}
            {!directory && !orchid && tab === 'value' && type !== 'file' && (
              <Button view="outlined" onClick={() => setAsked('value')}>
                Edit
              </Button>
            )}
            {path !== '/' && !orchid && (
              <Button view="outlined-danger" onClick={() => setAsked('remove')}>
                Remove
              </Button>
            )}
          </Allowed>
        </div>
      </div>
      <Tabs items={items} tab={tab}>
        {tab === 'children' && <Children path={path} />}
        {tab === 'rows' && <Rows path={path} />}
        {tab === 'value' && (type === 'file' ? <FileOf path={path} /> : <ValueOf path={path} />)}
        {tab === 'attributes' && <Attributes path={path} />}
        {tab === 'access' && <AccessTab path={path} permissions={NODE_PERMISSIONS} />}
      </Tabs>
      {asked === 'create' && <CreateNode path={path} onClose={close} />}
      {asked === 'value' && <EditValue path={path} onClose={close} />}
      {asked === 'remove' && (
        <Confirm
          title={`Remove ${path}?`}
          verb="Remove"
          danger
          act={() => api.remove(path)}
          onClose={close}
          onDone={() => navigate(links.tree(parent))}
        >
          <p>{directory ? 'It is removed with everything inside.' : 'It cannot be brought back.'}</p>
        </Confirm>
      )}
    </>
  );
}

function Children({ path }: { path: string }) {
  const [url, change] = useUrlState();
  const filter = url.get('filter') ?? '';
  const children = useLive('any', ['children', path], () => api.children(path));
  const columns: TableColumn<api.Child>[] = [
    {
      id: 'name',
      title: 'Name',
      width: 300,
      cell: item => (
        <Link href={links.tree(api.child(path, item.name))} className="clip mono" title={item.name}>
          {item.name}
        </Link>
      ),
    },
    { id: 'type', title: 'Type', width: 200, cell: item => <span className="clip">{item.type}</span> },
    {
      id: 'count',
      title: 'Children',
      width: 110,
      numeric: true,
      cell: item => (isDirectory(item.type) && item.count !== 0 ? count(item.count) : ''),
    },
    { id: 'modified', title: 'Changed', width: 180, cell: item => <Time at={item.modified} /> },
  ];
  return (
    <>
      <div className="toolbar">
        <TextInput
          className="toolbar__filter"
          value={filter}
          onUpdate={text => change({ filter: text })}
          placeholder="Filter by name"
          hasClear
          controlProps={{ 'aria-label': 'Filter by name' }}
        />
      </div>
      <Async query={children}>
        {({ shown, incomplete }) => (
          <>
            {incomplete && (
              <p className="secondary">
                There are more: these are the first {count(api.CHILDREN_SHOWN)}, and the filter looks at them.
              </p>
            )}
            <DataTable
              label="Children"
              columns={columns}
              rows={shown.filter(item => item.name.toLowerCase().includes(filter.toLowerCase()))}
              rowKey={item => item.name}
              rowHeight={30}
              empty={filter === '' ? 'Nothing is inside.' : 'Nothing inside has such a name.'}
            />
          </>
        )}
      </Async>
    </>
  );
}

function ValueOf({ path }: { path: string }) {
  const value = useLive('any', ['value', path], () => api.value(path));
  return <Async query={value}>{data => <Value value={data} label={`Value of ${path}`} />}</Async>;
}

function Attributes({ path }: { path: string }) {
  const [asked, setAsked] = useState(false);
  const attributes = useLive('any', ['attributes', path], () => api.attributes(path));
  return (
    <>
      <div className="toolbar">
        <Button view="outlined" onClick={() => setAsked(true)}>
          Set an attribute
        </Button>
      </div>
      <Async query={attributes}>
        {data => <Value value={data} depth={2} label={`Attributes of ${path}`} />}
      </Async>
      {asked && (
        <EditAttribute path={path} attributes={attributes.data ?? {}} onClose={() => setAsked(false)} />
      )}
    </>
  );
}
