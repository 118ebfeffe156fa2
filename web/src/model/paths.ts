/** Paths of the tree as a list of the places on the way. */

export interface Step {
  title: string;
  path: string;
}

/** `//sys/a` is the root, `//sys`, and `//sys/a`. A backslash keeps the slash behind it in the name. */
export function stepsOf(path: string): Step[] {
  const names = path.replace(/^\/+/, '').match(/(?:\\.|[^/\\])+/g) ?? [];
  const steps: Step[] = [{ title: '/', path: '/' }];
  let at = '/';
  for (const name of names) {
    at += `/${name}`;
    steps.push({ title: name.replace(/\\(.)/g, '$1'), path: at });
  }
  return steps;
}

/** As typed by people: with one slash, with a slash at the end. */
export function normalized(typed: string): string {
  const steps = stepsOf(typed.trim());
  return steps.at(-1)?.path ?? '/';
}

/** Types that have children. Others have a value. */
export const isDirectory = (type: string): boolean =>
  /_map$/.test(type) ||
  [
    'map_node',
    'sys_node',
    'scheduler_pool',
    'scheduler_pool_tree',
    'orchid',
    'cluster_node',
    'portal_entrance',
  ].includes(type);
