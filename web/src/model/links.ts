/** Addresses of the pages: everything that is shown can be linked to. */

const query = (parameters: Record<string, string | undefined>): string => {
  const set = Object.entries(parameters).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  );
  return set.length === 0 ? '' : `?${new URLSearchParams(set)}`;
};

export const links = {
  scheduling: (tree?: string) => `/scheduling${query({ tree })}`,
  pool: (tree: string, pool: string, tab?: string) =>
    `/scheduling/${encodeURIComponent(tree)}/${encodeURIComponent(pool)}${query({ tab })}`,
  operations: (filters: Record<string, string | undefined> = {}) => `/operations${query(filters)}`,
  operation: (id: string, tab?: string, more: Record<string, string | undefined> = {}) =>
    `/operations/${encodeURIComponent(id)}${query({ tab, ...more })}`,
  job: (operation: string, job: string, tab?: string) =>
    `/operations/${encodeURIComponent(operation)}/jobs/${encodeURIComponent(job)}${query({ tab })}`,
  nodes: () => '/nodes',
  node: (address: string) => `/nodes/${encodeURIComponent(address)}`,
  preemptions: (filters: Record<string, string | undefined> = {}) => `/preemptions${query(filters)}`,
  system: () => '/system',
  submit: (pool?: string) => `/submit${query({ pool })}`,
  tree: (path?: string) => `/tree${query({ path })}`,
};

/** What the `yt` client prints after starting an operation, in our form. */
export function forwardClientLink(pathname: string, search: string): string | undefined {
  if (pathname !== '/') return undefined;
  const asked = new URLSearchParams(search);
  const id = asked.get('id');
  if (asked.get('page') === 'operation' && id !== null) {
    const tab = asked.get('tab');
    return links.operation(id, tab === 'details' || tab === null ? undefined : tab);
  }
  return links.scheduling();
}
