/** What is shown until an answer is there, and instead of one. */

import { Spin } from '@gravity-ui/uikit';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ErrorView } from './ErrorView';

export function Loading() {
  return (
    <div className="table__empty" role="status" aria-label="Loading">
      <Spin size="m" />
    </div>
  );
}

interface Props<T> {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
}

/** The newest answer, with the error above it if the one after it failed. */
export function Async<T>({ query, children }: Props<T>) {
  if (query.data === undefined) return query.error === null ? <Loading /> : <ErrorView error={query.error} />;
  return (
    <>
      {query.error !== null && <ErrorView error={query.error} />}
      {children(query.data)}
    </>
  );
}
