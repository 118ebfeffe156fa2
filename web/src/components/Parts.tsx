/** Small things that many pages show. */

import { Check, Copy as CopyIcon } from '@gravity-ui/icons';
import { CopyToClipboard, Icon, Label } from '@gravity-ui/uikit';
import { Fragment, useEffect, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { duration, elapsed, shortId, time, words } from '../model/format';
import { links } from '../model/links';

/** Lists have many of these: a plain button, without a tooltip of its own. */
export function Copy({ text, what }: { text: string; what: string }) {
  return (
    <CopyToClipboard text={text} timeout={1_200}>
      {status => (
        <button
          type="button"
          className="icon-button"
          title={status === 'success' ? 'Copied' : `Copy ${what}`}
          aria-label={`Copy ${what}`}
        >
          <Icon data={status === 'success' ? Check : CopyIcon} size={14} />
        </button>
      )}
    </CopyToClipboard>
  );
}

/** Names and values, one pair in each line; lines without a value are left out. */
export function Facts({ items }: { items: [string, ReactNode][] }) {
  return (
    <dl className="facts">
      {items
        .filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false)
        .map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
    </dl>
  );
}

export function Card({
  title,
  extra,
  children,
}: {
  title?: ReactNode;
  extra?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="card">
      {title !== undefined && (
        <h2 className="card__title">
          {title}
          {extra}
        </h2>
      )}
      {children}
    </section>
  );
}

export function OperationLink({ id, title }: { id: string; title?: string | undefined }) {
  return (
    <Link href={links.operation(id)} className="clip" title={title === undefined ? id : `${title}\n${id}`}>
      {title ?? <span className="mono">{shortId(id)}</span>}
    </Link>
  );
}

export function PoolLink({ tree, pool }: { tree: string; pool: string }) {
  return (
    <Link href={links.pool(tree, pool)} className="clip" title={pool}>
      {pool}
    </Link>
  );
}

const TONES: Record<string, string> = {
  completed: 'good',
  online: 'good',
  running: 'busy',
  failed: 'bad',
  failing: 'bad',
  offline: 'bad',
  banned: 'bad',
  lost: 'bad',
  aborted: 'warn',
  aborting: 'warn',
  suspended: 'warn',
  pending: 'idle',
};

/** A state with its colour. The colour repeats what the word says. */
export function State({ state, suspended = false }: { state: string; suspended?: boolean | undefined }) {
  const shown = suspended && state === 'running' ? 'suspended' : state;
  return <span className={`state state_${TONES[shown] ?? 'busy'}`}>{words(shown)}</span>;
}

/** A time of day, with the full one under the pointer. */
export function Time({ at }: { at: string | undefined }) {
  if (at === undefined) return null;
  return (
    <time dateTime={at} title={at} className="numbers nowrap">
      {time(at)}
    </time>
  );
}

/** How long something lasts, counting while it does. */
export function Elapsed({ start, end }: { start: string | undefined; end?: string | undefined }) {
  const [, tick] = useState(0);
  const running = start !== undefined && end === undefined;
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(() => tick(n => n + 1), 1_000);
    return () => clearInterval(timer);
  }, [running]);
  // Whole seconds while it counts: tenths would only flicker.
  const passed = elapsed(start, end);
  const shown = running && passed !== undefined ? Math.floor(passed / 1_000) * 1_000 : passed;
  return <span className="numbers nowrap">{shown === 0 ? '0 s' : duration(shown)}</span>;
}

export function Mark({
  children,
  tone = 'normal',
  title,
}: {
  children: ReactNode;
  tone?: 'normal' | 'warning' | 'danger' | 'info' | 'success';
  title?: string;
}) {
  return (
    <Label theme={tone} size="xs" title={title}>
      {children}
    </Label>
  );
}

/** Where one is: the ways up, then the thing itself. */
export function Crumbs({ items }: { items: { title: string; href?: string }[] }) {
  return (
    <nav className="crumbs" aria-label="Where this is">
      {items.map((item, index) => (
        <Fragment key={`${index} ${item.title}`}>
          {index > 0 && (
            <span className="crumbs__separator" aria-hidden>
              /
            </span>
          )}
          {item.href === undefined ? <span>{item.title}</span> : <Link href={item.href}>{item.title}</Link>}
        </Fragment>
      ))}
    </nav>
  );
}

/** Sets the title of the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === '' ? 'Millpond' : `${title} · Millpond`;
  }, [title]);
}
