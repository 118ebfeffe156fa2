/** A form for a vanilla operation, with the same as commands to copy. */

import { Button, Select, TextArea, TextInput } from '@gravity-ui/uikit';
import { useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import { useLive } from '../../api/live';
import { start } from '../../api/operations';
import { poolPath, pools as askPools, trees as askTrees } from '../../api/scheduling';
import { useMay } from '../../api/session-context';
import { ErrorView } from '../../components/ErrorView';
import { Card, Copy, useTitle } from '../../components/Parts';
import { links } from '../../model/links';
import { pathOf, ROOT, type Pools } from '../../model/pools';
import {
  EMPTY,
  millpondCommand,
  problemsOf,
  pythonProgram,
  specOf,
  specText,
  ytCommand,
  type SubmitForm,
} from '../../model/submit';
import { shareEntries } from '../../model/sharing';
import { useUrlState } from '../../model/urlState';

const FORMS = [
  { id: 'millpond', title: 'millpond', text: millpondCommand },
  { id: 'yt', title: 'yt', text: ytCommand },
  { id: 'python', title: 'Python', text: pythonProgram },
  { id: 'spec', title: 'Specification', text: specText },
] as const;

export function Submit() {
  useTitle('Submit');
  const [url] = useUrlState();
  const [, navigate] = useLocation();
  const [form, setForm] = useState<SubmitForm>({ ...EMPTY, pool: url.get('pool') ?? '' });
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const problems = useMemo(() => problemsOf(form), [form]);
  const { tree, pools } = usePools();
  // A pool that does not exist yet is made for the operation.
  const known = tree !== undefined && form.pool in pools;
  const mayUse = useMay({ to: 'use', at: known ? poolPath(tree, pathOf(pools, form.pool)) : undefined });
  const put = (field: keyof SubmitForm) => (text: string) => {
    setForm(before => ({ ...before, [field]: text }));
    setTouched(before => new Set(before).add(field));
  };
  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      const { operation_id } = await start('vanilla', specOf(form));
      navigate(links.operation(operation_id));
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
    }
  };
  const field = (name: keyof SubmitForm, label: string, hint?: string) => (
    <>
      <label htmlFor={`submit-${name}`}>{label}</label>
      <div>
        <TextInput
          id={`submit-${name}`}
          value={form[name]}
          onUpdate={put(name)}
          validationState={touched.has(name) && problems[name] !== undefined ? 'invalid' : undefined}
          errorMessage={touched.has(name) ? problems[name] : undefined}
        />
        {hint !== undefined && <div className="form__hint">{hint}</div>}
      </div>
    </>
  );
  return (
    <>
      <h1 className="page__title">Submit an operation</h1>
      <div className="cards cards_wide">
        <Card title="Vanilla: equal jobs of one command">
          <div className="form">
            {field('title', 'Title')}
            <span className="form__label">Pool</span>
            <PoolChoice value={form.pool} onUpdate={put('pool')} />
            <label htmlFor="submit-command">Command</label>
            <div>
              <TextArea
                id="submit-command"
                value={form.command}
                onUpdate={put('command')}
                minRows={3}
                placeholder={'echo "unit $YT_JOB_COOKIE on $YT_NODE_HOST" >&2'}
                validationState={
                  touched.has('command') && problems.command !== undefined ? 'invalid' : undefined
                }
                errorMessage={touched.has('command') ? problems.command : undefined}
                controlProps={{ className: 'mono', spellCheck: false }}
              />
              <div className="form__hint">Run by bash -c in an empty directory</div>
            </div>
            {field('task', 'Task')}
            {field('jobs', 'Jobs')}
            {field('cpu', 'CPU of each')}
            {field('memory', 'Memory of each', 'A limit: above it the job fails')}
            {field('gpu', 'GPUs of each')}
            {field('weight', 'Weight', 'Among the operations of the pool; 1 if empty')}
            {field('maxFailed', 'Failed jobs allowed', 'So many failed jobs fail the operation; 10 if empty')}
            <span />
            <div>
              <Button
                view="action"
                size="l"
                loading={busy}
                disabled={Object.keys(problems).length > 0 || mayUse === false}
                onClick={() => void submit()}
              >
                Start
              </Button>
              {mayUse === false && <p className="warn">You may not use the pool {form.pool}.</p>}
            </div>
          </div>
          {error !== null && <ErrorView error={error} />}
        </Card>
        <Equivalents form={form} />
      </div>
    </>
  );
}

/** The pools of the default tree. */
function usePools(): { tree: string | undefined; pools: Pools } {
  const trees = useLive('pools', ['trees'], askTrees);
  const tree = trees.data?.default;
  const pools = useLive('pools', ['pools', tree, 'names'], () => askPools(tree ?? '', ['parent']), {
    enabled: tree !== undefined,
    share: shareEntries,
  });
  return { tree, pools: pools.data ?? {} };
}

function PoolChoice({ value, onUpdate }: { value: string; onUpdate: (pool: string) => void }) {
  const { pools } = usePools();
  const names = Object.keys(pools)
    .filter(name => name !== ROOT)
    .sort();
  return (
    <Select
      value={value === '' ? [] : [value]}
      placeholder="a pool of your own"
      hasClear
      filterable
      width="max"
      aria-label="Pool"
      options={names.map(name => ({ value: name, content: pathOf(pools, name).join(' / ') }))}
      onUpdate={([chosen]) => onUpdate(chosen ?? '')}
    />
  );
}

function Equivalents({ form }: { form: SubmitForm }) {
  const [shown, setShown] = useState<string>('millpond');
  const current = FORMS.find(f => f.id === shown) ?? FORMS[0];
  const text = current.text(form, window.location.host);
  return (
    <Card title="The same from elsewhere">
      <div className="code-tabs">
        <div className="toolbar">
          {FORMS.map(({ id, title }) => (
            <Button
              key={id}
              size="s"
              view={id === shown ? 'normal' : 'flat'}
              aria-pressed={id === shown}
              onClick={() => setShown(id)}
            >
              {title}
            </Button>
          ))}
        </div>
        <div className="copyable">
          <pre className="pre" tabIndex={0}>
            {text}
          </pre>
          <span className="copyable__button">
            <Copy text={text} what={current.title} />
          </span>
        </div>
      </div>
    </Card>
  );
}
