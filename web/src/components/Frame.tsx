/** The bar on top of every page: where one can go, how live the page is, light or dark. */

import { Display, Magnifier, Moon, Pause, Person, Play, Sun } from '@gravity-ui/icons';
import { Button, DropdownMenu, Icon, TextInput } from '@gravity-ui/uikit';
import { useIsFetching, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import { useLiveControl } from '../api/live';
import { signOut } from '../api/session';
import { useSession, useSessionChanged } from '../api/session-context';
import { links } from '../model/links';
import type { Theme } from '../model/theme';
import { FavouritesMenu } from './Favourites';

const PAGES = [
  { title: 'Scheduling', path: '/scheduling' },
  { title: 'Operations', path: '/operations' },
  { title: 'Nodes', path: '/nodes' },
  { title: 'Preemptions', path: '/preemptions' },
  { title: 'Tree', path: '/tree' },
  { title: 'People', path: '/people' },
  { title: 'System', path: '/system' },
  { title: 'Submit', path: '/submit' },
];

const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };
const ICONS = { system: Display, light: Sun, dark: Moon };

interface Props {
  theme: Theme;
  onTheme: (theme: Theme) => void;
  children: ReactNode;
}

export function Frame({ theme, onTheme, children }: Props) {
  const [location] = useLocation();
  return (
    <div className="frame">
      <header className="topbar">
        <Link href="/scheduling" className="topbar__logo" aria-label="Millpond">
          <img src="/favicon.svg" alt="" />
          <span>Millpond</span>
        </Link>
        <nav className="topbar__nav" aria-label="Pages">
          {PAGES.map(page => (
            <Link
              key={page.path}
              href={page.path}
              aria-current={location.startsWith(page.path) ? 'page' : undefined}
            >
              {page.title}
            </Link>
          ))}
        </nav>
        <div className="topbar__space" />
        <FindOperation />
        <div className="topbar__tools">
          <FavouritesMenu />
          <LiveSwitch />
          <User />
          <Button
            view="flat"
            title={`Colours: ${theme}. Change to ${NEXT[theme]}`}
            aria-label={`Colours: ${theme}. Change to ${NEXT[theme]}`}
            onClick={() => onTheme(NEXT[theme])}
          >
            <Icon data={ICONS[theme]} />
          </Button>
        </div>
      </header>
      <main className="page">{children}</main>
    </div>
  );
}

/** An id or an alias leads to the operation, anything else to the list. */
function FindOperation() {
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState('');
  const go = () => {
    const text = typed.trim();
    if (text === '') return;
    const isOne = /^[0-9a-f]+(-[0-9a-f]+){3}$/i.test(text) || text.startsWith('*');
    navigate(isOne ? links.operation(text) : links.operations({ filter: text }));
    setTyped('');
  };
  return (
    <TextInput
      className="topbar__find"
      value={typed}
      onUpdate={setTyped}
      placeholder="Operation: id, *alias, text"
      controlProps={{ 'aria-label': 'Find an operation' }}
      startContent={<Icon data={Magnifier} size={14} className="find-icon" />}
      onKeyDown={event => {
        if (event.key === 'Enter') go();
      }}
    />
  );
}

/** Who is signed in, and the way out; nothing on servers without users. */
function User() {
  const { login, auth } = useSession();
  const changed = useSessionChanged();
  if (!auth) return null;
  return (
    <DropdownMenu
      items={[{ text: 'Sign out', action: () => void signOut().finally(changed) }]}
      renderSwitcher={switcher => (
        <Button {...switcher} view="flat" aria-label={`Signed in as ${login}`}>
          <Icon data={Person} size={14} />
          <span className="topbar__user clip">{login}</span>
        </Button>
      )}
    />
  );
}

const LIVE_BY = {
  stream: 'Live: the server says what changes',
  clock: 'Live: the page asks every two seconds',
};

function LiveSwitch() {
  const { on, source, setOn, refresh } = useLiveControl();
  const lost = useServerLost();
  const state = lost ? 'The server does not answer' : on ? LIVE_BY[source] : 'Paused';
  return (
    <Button
      view="flat"
      title={on ? `${state}. Click to pause` : `${state}. Click to go on`}
      aria-label={on ? `${state}. Click to pause` : `${state}. Click to go on`}
      onClick={() => {
        setOn(!on);
        if (!on) refresh();
      }}
    >
      <span className="state-tools">
        <span className={`live-dot ${lost ? 'live-dot_lost' : on ? '' : 'live-dot_off'}`} />
        <Icon data={on ? Pause : Play} size={14} />
      </span>
    </Button>
  );
}

/** Did the newest question of the page go unanswered? */
function useServerLost(): boolean {
  const client = useQueryClient();
  const fetching = useIsFetching();
  const [lost, setLost] = useState(false);
  useEffect(() => {
    const active = client.getQueryCache().findAll({ type: 'active', queryKey: ['live'] });
    const unanswered = (error: unknown) => (error as { tree?: { code: number } } | null)?.tree?.code === 0;
    setLost(active.length > 0 && active.some(query => unanswered(query.state.error)));
  }, [client, fetching]);
  return lost;
}
