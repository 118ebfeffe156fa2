/** The form in front of everything else, on servers with users. It leads back to where one was. */

import { Button, TextInput } from '@gravity-ui/uikit';
import { useState, type FormEvent } from 'react';
import { signIn } from '../../api/session';
import { useSessionChanged } from '../../api/session-context';
import { ErrorView } from '../../components/ErrorView';
import { useTitle } from '../../components/Parts';

export function SignIn({ refusal }: { refusal: unknown }) {
  useTitle('Sign in');
  const changed = useSessionChanged();
  const [byToken, setByToken] = useState(false);
  const [user, setUser] = useState('');
  const [secret, setSecret] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(refusal);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await signIn(byToken ? { token: secret.trim() } : { user: user.trim(), password: secret });
      changed();
    } catch (refused) {
      setError(refused);
      setSecret('');
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="sign-in">
      <form className="card sign-in__form" onSubmit={event => void submit(event)}>
        <h1 className="page__title sign-in__title">
          <img src="/favicon.svg" alt="" />
          Sign in to Millpond
        </h1>
        {!byToken && (
          <label className="sign-in__line">
            <span>User</span>
            <TextInput
              value={user}
              onUpdate={setUser}
              autoFocus
              autoComplete="username"
              controlProps={{ name: 'user', 'aria-label': 'User' }}
            />
          </label>
        )}
        <label className="sign-in__line">
          <span>{byToken ? 'Token' : 'Password'}</span>
          <TextInput
            key={String(byToken)}
            type="password"
            value={secret}
            onUpdate={setSecret}
            autoComplete={byToken ? 'off' : 'current-password'}
            controlProps={{
              name: byToken ? 'token' : 'password',
              'aria-label': byToken ? 'Token' : 'Password',
            }}
          />
        </label>
        {error !== undefined && <ErrorView error={error} />}
        <Button
          type="submit"
          view="action"
          size="l"
          width="max"
          loading={busy}
          disabled={secret === '' || (!byToken && user.trim() === '')}
        >
          Sign in
        </Button>
        <Button
          view="flat-secondary"
          width="max"
          onClick={() => {
            setByToken(!byToken);
            setSecret('');
            setError(undefined);
          }}
        >
          {byToken ? 'With user and password' : 'With a token'}
        </Button>
        <p className="secondary sign-in__hint">
          The first start of a server writes the token of root to DATA_DIR/root.token; people get theirs from
          an administrator.
        </p>
      </form>
    </main>
  );
}
