/** The session for components: who is here, and [`Allowed`], which offers only what they may do. */

import { useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { createContext, useContext, useEffect, type ReactNode } from 'react';
import { onSignedOut } from './client';
import { Refusal } from './errors';
import { mayAt, mayOperate, whoami, type Permission, type Session } from './session';

const EVERYBODY: Session = { login: '', auth: false, superuser: true };
const SessionContext = createContext<Session>(EVERYBODY);
const KEY = ['session'];

export const useSession = (): Session => useContext(SessionContext);

interface Props {
  children: ReactNode;
  /** Instead of everything, for those who have to sign in, or are known and not let in. */
  signIn: (refusal: unknown) => ReactNode;
}

export function SessionProvider({ children, signIn }: Props) {
  const client = useQueryClient();
  const { data, error, isPending } = useQuery({ queryKey: KEY, queryFn: whoami, staleTime: Infinity });
  // A session that ended while the page was open.
  useEffect(() => onSignedOut(() => void client.resetQueries({ queryKey: KEY })), [client]);
  if (isPending) return null;
  if (data === null) return <>{signIn(undefined)}</>;
  // Somebody who is banned. A server that does not answer is shown by the pages themselves.
  if (error instanceof Refusal && error.status === 403) return <>{signIn(error)}</>;
  return <SessionContext value={data ?? EVERYBODY}>{children}</SessionContext>;
}

/** Asks anew who is here, and forgets what somebody else was told. */
export function useSessionChanged(): () => void {
  const client = useQueryClient();
  return () => void client.resetQueries();
}

interface OnPath {
  to: Permission;
  /** A path of the tree; nothing while it is not known. */
  at: string | undefined;
}

interface OnOperation {
  to: 'read' | 'manage';
  operation: string;
}

/** May they? Undefined as long as that is not known. */
export function useMay(what: OnPath | OnOperation): boolean | undefined {
  const { login, superuser } = useSession();
  const target = 'operation' in what ? what.operation : what.at;
  const { data }: UseQueryResult<boolean> = useQuery({
    queryKey: ['may', login, what],
    queryFn: () =>
      'operation' in what ? mayOperate(login, what.to, what.operation) : mayAt(login, what.to, what.at ?? ''),
    enabled: !superuser && target !== undefined,
    // Rights change rarely, and the server has the last word anyway.
    staleTime: 60_000,
  });
  return superuser || data;
}

/** What is inside, for those who may. Lists have one for each row: those who may everything are not asked about. */
export function Allowed({ children, ...what }: (OnPath | OnOperation) & { children: ReactNode }) {
  const { superuser } = useSession();
  return superuser ? <>{children}</> : <Asked what={what}>{children}</Asked>;
}

function Asked({ what, children }: { what: OnPath | OnOperation; children: ReactNode }) {
  return useMay(what) === true ? <>{children}</> : null;
}
