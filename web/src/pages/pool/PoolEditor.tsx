/** Dialog for the settings of a pool, of a new one or of one there is. */

import { Button, Dialog, Select, Switch, Text, TextInput } from '@gravity-ui/uikit';
import { useMemo, useState, type ReactNode } from 'react';
import { callWithInput, get } from '../../api/client';
import { errorTree } from '../../api/errors';
import { Loading } from '../../components/Async';
import { ErrorView } from '../../components/ErrorView';
import { Subjects } from '../../components/Subjects';
import {
  changePool,
  createPool,
  poolPath,
  pools as askPools,
  settings as askSettings,
  treeSummary,
  trees as askTrees,
} from '../../api/scheduling';
import { useLiveControl, useOnce } from '../../api/live';
import { responsibleAce } from '../../model/acl';
import { pathOf, ROOT, type Pools } from '../../model/pools';
import {
  changeOf,
  fieldOfError,
  formOf,
  nameProblem,
  type Form,
  type Problems,
  type Settings,
} from '../../model/poolForm';
import { amount, present, resourceTitle, type Resource, type Resources } from '../../model/resources';

interface Props {
  tree: string;
  /** Pool that is edited; a new one without. */
  name?: string;
  /** Parent that a new pool gets unless another is chosen. */
  parent?: string;
  onClose: () => void;
  /** With the tree, which may have been chosen in the dialog. */
  onDone: (name: string, tree: string) => void;
}

/** What the choice of a parent, and what it has left to give, need of other pools. */
const FIELDS = ['parent', 'mode', 'is_ephemeral', 'strong_guarantee_resources'];

interface Asked {
  pools: Pools;
  total: Resources;
  /** Of the pool that is edited. */
  path: string | undefined;
  settings: Settings;
}

async function ask(tree: string, name: string | undefined): Promise<Asked> {
  const [pools, summary] = await Promise.all([askPools(tree, FIELDS), treeSummary(tree)]);
  const total = summary.resource_limits;
  if (name === undefined) return { pools, total, path: undefined, settings: {} };
  const path = poolPath(tree, pathOf(pools, name));
  return { pools, total, path, settings: await askSettings(path) };
}

export function PoolEditor(props: Props) {
  // A new pool may be made in any tree, as long as nobody said where.
  const [tree, setTree] = useState(props.tree);
  const trees = useOnce(['trees'], askTrees, props.name === undefined && props.parent === undefined);
  // Asked anew at each opening: somebody else may have changed it.
  const [opened] = useState(() => Date.now());
  const current = useOnce(['pool editor', tree, props.name, opened], () => ask(tree, props.name));
  const title = props.name === undefined ? 'New pool' : `Settings of ${props.name}`;
  return (
    <Dialog open onClose={props.onClose} size="l" aria-label={title} contentOverflow="auto">
      <Dialog.Header caption={title} />
      {current.data === undefined ? (
        <Dialog.Body>
          {current.error === null ? <Loading /> : <ErrorView error={current.error} />}
        </Dialog.Body>
      ) : (
        <Fields
          key={tree}
          {...props}
          {...current.data}
          tree={tree}
          trees={trees.data?.names ?? []}
          onTree={setTree}
        />
      )}
    </Dialog>
  );
}

type FieldsProps = Props & Asked & { trees: string[]; onTree: (tree: string) => void };

const CHOOSE_MODE = [
  { value: 'fair_share', content: 'fair share' },
  { value: 'fifo', content: 'FIFO' },
];
const CHOOSE_GUARANTEE = [
  { value: 'none', content: 'none (only for pools inside)' },
  { value: 'burst', content: 'burst' },
  { value: 'relaxed', content: 'relaxed' },
];

function Fields({
  tree,
  trees,
  onTree,
  pools,
  name: oldName,
  parent: newParent,
  path,
  settings,
  total,
  onClose,
  onDone,
}: FieldsProps) {
  const { refresh } = useLiveControl();
  const resources = useMemo(() => present(total), [total]);
  const oldParent = oldName === undefined ? (newParent ?? ROOT) : (pools[oldName]?.parent ?? ROOT);
  const [name, setName] = useState(oldName ?? '');
  const [parent, setParent] = useState(oldParent);
  const [form, setForm] = useState<Form>(() => formOf(settings, resources));
  const [responsible, setResponsible] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [left, setLeft] = useState(oldName !== undefined);

  const change = useMemo(() => changeOf(settings, form, resources), [settings, form, resources]);
  const wrongName = name === oldName || !left ? undefined : nameProblem(name);
  const nothing =
    Object.keys(change.set).length === 0 &&
    change.unset.length === 0 &&
    name === oldName &&
    parent === oldParent;
  const blocked = nothing || Object.keys(change.problems).length > 0 || nameProblem(name) !== undefined;
  const errorField = error === null ? undefined : fieldOfError(error, resources);
  const problems: Problems = { ...change.problems };
  if (errorField !== undefined) problems[errorField] = errorTree(error).message;

  const put = (field: string) => (text: string) => {
    setForm(before => ({ ...before, [field]: text }));
    setError(null);
  };

  const access = responsible.length === 0 ? {} : { acl: [responsibleAce(responsible)] };
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      if (path === undefined) await createPool(tree, parent, name, { ...change.set, ...access });
      else await saveExisting(path);
      refresh();
      onDone(name, tree);
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
    }
  };

  const saveExisting = async (at: string) => {
    await changePool(at, change.set, change.unset);
    // By id: the path changes with the name and the parent.
    if (name === oldName && parent === oldParent) return;
    const id = `#${await get<string>(`${at}/@id`)}`;
    if (name !== oldName) await callWithInput('set', { path: `${id}/@name` }, name);
    if (parent !== oldParent) await callWithInput('set', { path: `${id}/@parent_name` }, parent);
  };

  const text = (field: string, hint?: ReactNode, label?: string) => (
    <TextField
      id={`pool-${field}`}
      label={label ?? field}
      value={form[field] ?? ''}
      problem={problems[field]}
      hint={hint}
      onUpdate={put(field)}
    />
  );
  const byResource = (title: string, map: string, hint?: (resource: Resource) => ReactNode) => (
    <>
      <div className="form__label">{title}</div>
      <div className="form__resources">
        {resources.map(resource => (
          <div key={resource}>
            <TextField
              id={`pool-${map}/${resource}`}
              label={`${title}: ${resourceTitle(resource)}`}
              inside={resourceTitle(resource)}
              value={form[`${map}/${resource}`] ?? ''}
              problem={problems[`${map}/${resource}`]}
              hint={hint?.(resource)}
              onUpdate={put(`${map}/${resource}`)}
            />
          </div>
        ))}
      </div>
    </>
  );
  const flag = (field: string, label: string) => (
    <>
      <span />
      <Switch
        checked={form[field] === 'true'}
        onUpdate={on => put(field)(on ? 'true' : settings[field] === undefined ? '' : 'false')}
      >
        {label}
      </Switch>
    </>
  );

  return (
    <>
      <Dialog.Body>
        {error !== null && errorField === undefined && <ErrorView error={error} />}
        <div className="form">
          <Row id="pool-name" label="Name">
            <TextField
              id="pool-name"
              label="name"
              value={name}
              problem={wrongName ?? problems['name']}
              onUpdate={value => {
                setName(value);
                setLeft(true);
                setError(null);
              }}
            />
          </Row>
          {trees.length > 1 && (
            <Row id="pool-tree" label="Tree">
              <Select
                value={[tree]}
                options={trees.map(value => ({ value, content: value }))}
                width="max"
                aria-label="Tree of the pool"
                onUpdate={([chosen]) => onTree(chosen ?? tree)}
              />
            </Row>
          )}
          <Row id="pool-parent" label="Parent">
            <Select
              value={[parent]}
              options={parents(pools, oldName)}
              filterable
              width="max"
              aria-label="Parent"
              onUpdate={([chosen]) => setParent(chosen ?? ROOT)}
            />
          </Row>
          {oldName === undefined && (
            <Row id="pool-responsible" label="Responsible">
              <Subjects label="Responsible" value={responsible} onUpdate={setResponsible} />
              <div className="form__hint">May use, change and administer it</div>
            </Row>
          )}
          <Row id="pool-mode" label="Mode">
            <Choice
              label="Mode"
              value={form['mode']}
              options={CHOOSE_MODE}
              unset="default (fair share)"
              problem={problems['mode']}
              onUpdate={put('mode')}
            />
          </Row>
          <Row id="pool-weight" label="Weight">
            {text('weight', 'Among its siblings; 1 if empty')}
          </Row>
          <Row id="pool-max_running_operation_count" label="Running operations">
            {text('max_running_operation_count', 'At most; further ones wait')}
          </Row>
          <Row id="pool-max_operation_count" label="Operations">
            {text('max_operation_count', 'At most; further ones are refused')}
          </Row>

          <div className="form__section">Guarantees</div>
          {byResource('Strong: always', 'strong_guarantee_resources', resource => (
            <Free pools={pools} parent={parent} name={oldName} resource={resource} total={total} />
          ))}
          <Row id="pool-integral" label="Integral guarantee">
            <Choice
              label="Type of the integral guarantee"
              value={form['integral_guarantees/guarantee_type']}
              options={CHOOSE_GUARANTEE}
              unset="none"
              problem={problems['integral_guarantees/guarantee_type']}
              onUpdate={put('integral_guarantees/guarantee_type')}
            />
          </Row>
          {byResource('Flow: over time', 'integral_guarantees/resource_flow')}
          {byResource('Burst: at once', 'integral_guarantees/burst_guarantee_resources')}
          {byResource('Limits: never more', 'resource_limits')}

          <div className="form__section">Other</div>
          {flag('forbid_immediate_operations', 'No operations in the pool itself, only in pools inside')}
          {flag('create_ephemeral_subpools', 'A pool of its own for each user')}
          {form['mode'] === 'fifo' && (
            <Row id="pool-fifo_sort_parameters" label="FIFO order">
              {text('fifo_sort_parameters', 'weight, start_time, pending_job_count: the first decides')}
            </Row>
          )}
        </div>
      </Dialog.Body>
      <Dialog.Footer
        textButtonApply={oldName === undefined ? 'Create' : 'Save'}
        textButtonCancel="Cancel"
        onClickButtonApply={() => void save()}
        onClickButtonCancel={onClose}
        loading={busy}
        propsButtonApply={{ disabled: blocked }}
      >
        {oldName !== undefined && !nothing && (
          <Button
            view="flat"
            onClick={() => {
              setForm(formOf(settings, resources));
              setName(oldName);
              setParent(oldParent);
              setError(null);
            }}
          >
            Undo
          </Button>
        )}
      </Dialog.Footer>
    </>
  );
}

function Row({ id, label, children }: { id: string; label: string; children: ReactNode }) {
  return (
    <>
      <label htmlFor={id}>{label}</label>
      <div>{children}</div>
    </>
  );
}

interface TextFieldProps {
  id: string;
  label: string;
  /** Shown in the field, in front of the value. */
  inside?: string;
  value: string;
  problem?: string | undefined;
  hint?: ReactNode;
  onUpdate: (text: string) => void;
}

function TextField({ id, label, inside, value, problem, hint, onUpdate }: TextFieldProps) {
  return (
    <>
      <TextInput
        id={id}
        {...(inside === undefined ? {} : { label: inside })}
        value={value}
        onUpdate={onUpdate}
        validationState={problem === undefined ? undefined : 'invalid'}
        errorMessage={problem}
        controlProps={{ 'aria-label': label, autoComplete: 'off' }}
      />
      {hint !== undefined && problem === undefined && <div className="form__hint">{hint}</div>}
    </>
  );
}

interface ChoiceProps {
  label: string;
  value: string | undefined;
  options: { value: string; content: string }[];
  unset: string;
  problem?: string | undefined;
  onUpdate: (value: string) => void;
}

function Choice({ label, value, options, unset, problem, onUpdate }: ChoiceProps) {
  return (
    <>
      <Select
        value={value === undefined || value === '' ? [] : [value]}
        options={options}
        placeholder={unset}
        hasClear
        width="max"
        aria-label={label}
        onUpdate={([chosen]) => onUpdate(chosen ?? '')}
      />
      {problem !== undefined && (
        <Text color="danger" as="div">
          {problem}
        </Text>
      )}
    </>
  );
}

/** What the parent has not given to others yet. */
function Free({
  pools,
  parent,
  name,
  resource,
  total,
}: {
  pools: Pools;
  parent: string;
  name: string | undefined;
  resource: Resource;
  total: Resources;
}) {
  const own = parent === ROOT ? total[resource] : pools[parent]?.strong_guarantee_resources?.[resource];
  if (own === undefined) return null;
  const siblings = Object.entries(pools).filter(([key, pool]) => pool.parent === parent && key !== name);
  const given = siblings.reduce(
    (sum, [, pool]) => sum + (pool.strong_guarantee_resources?.[resource] ?? 0),
    0,
  );
  const whose = parent === ROOT ? 'the tree' : parent;
  return (
    <>
      {amount(resource, Math.max(0, own - given))} of {amount(resource, own)} left in {whose}
    </>
  );
}

/** Pools that can be parents: not the pool itself, nothing inside it, nothing that ends with its operations. */
function parents(pools: Pools, name: string | undefined): { value: string; content: string }[] {
  const possible = Object.keys(pools).filter(
    key =>
      key !== ROOT &&
      pools[key]?.is_ephemeral !== true &&
      pools[key]?.mode !== 'fifo' &&
      !(name !== undefined && pathOf(pools, key).includes(name)),
  );
  return [ROOT, ...possible.sort()].map(value => ({
    value,
    content: value === ROOT ? ROOT : pathOf(pools, value).join(' / '),
  }));
}
