/** Who asks, how one signs in, and what one may do (http-api.md 3). */

import { call, send, setCsrfToken } from './client';
import { Refusal } from './errors';

export interface Session {
  login: string;
  /** Without users everybody is root, and nobody signs in. */
  auth: boolean;
  superuser: boolean;
}

/** Nothing, if one has to sign in first. */
export async function whoami(): Promise<Session | null> {
  let response: Response;
  try {
    response = await send('/auth/whoami', { method: 'GET' });
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) return null;
    throw error;
  }
  const answer = (await response.json()) as Partial<Session> & { login: string; csrf_token?: string };
  setCsrfToken(answer.csrf_token ?? '');
  const auth = answer.auth === true;
  return { login: answer.login, auth, superuser: !auth || answer.superuser === true };
}

const post = (path: string, body: object): Promise<Response> =>
  send(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });

export const signIn = (with_: { user: string; password: string } | { token: string }): Promise<unknown> =>
  post('/login', with_);
export const signOut = (): Promise<unknown> => post('/logout', {});

export type Permission = 'read' | 'write' | 'use' | 'administer' | 'manage';

interface Verdict {
  action: 'allow' | 'deny';
}

/** On a path of the tree. */
export const mayAt = async (user: string, permission: Permission, path: string): Promise<boolean> =>
  (await call<Verdict>('check_permission', { user, permission, path })).action === 'allow';

/** On an operation and its jobs. */
export const mayOperate = async (
  user: string,
  permission: 'read' | 'manage',
  operation: string,
): Promise<boolean> =>
  (await call<Verdict>('check_operation_permission', { user, permission, operation_id: operation }))
    .action === 'allow';
