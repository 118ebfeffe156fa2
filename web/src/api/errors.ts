/** The error contract of the API: a tree of `{code, message, attributes, inner_errors}`. */

export interface ErrorTree {
  code: number;
  message: string;
  attributes: Record<string, unknown>;
  inner_errors: ErrorTree[];
}

/** A refused command, or a server that did not answer (code 0). */
export class Refusal extends Error {
  readonly tree: ErrorTree;
  /** Of the HTTP answer, where there was one. */
  readonly status: number | undefined;

  constructor(tree: ErrorTree, status?: number) {
    super(tree.message);
    this.name = 'Refusal';
    this.tree = tree;
    this.status = status;
  }
}

/** The server itself could not be reached: nothing is known about the command. */
export const UNREACHABLE = 0;
/** The path, pool, operation or job does not exist. */
export const RESOLVE_ERROR = 500;

/** Whatever came back, read as an error tree: answers of a proxy in between may be anything. */
export function decodeError(value: unknown, fallback: string): ErrorTree {
  const map = (typeof value === 'object' && value !== null ? value : {}) as Partial<ErrorTree>;
  return {
    code: typeof map.code === 'number' ? map.code : 1,
    message: typeof map.message === 'string' && map.message !== '' ? map.message : fallback,
    attributes: map.attributes ?? {},
    inner_errors: (map.inner_errors ?? []).map(inner => decodeError(inner, 'Unknown error')),
  };
}

/** Any thrown value as an error tree, to be shown. */
export function errorTree(error: unknown): ErrorTree {
  if (error instanceof Refusal) return error.tree;
  return decodeError(
    { code: 1, message: error instanceof Error ? error.message : String(error) },
    'Unknown error',
  );
}

/** Is there this code anywhere in the tree? */
export function containsCode(error: unknown, code: number): boolean {
  const inside = (tree: ErrorTree): boolean => tree.code === code || tree.inner_errors.some(inside);
  return inside(errorTree(error));
}

/** The first attribute of this name in the tree, from the outside in. */
export function errorAttribute(error: unknown, name: string): unknown {
  const find = (tree: ErrorTree): unknown => {
    if (name in tree.attributes) return tree.attributes[name];
    for (const inner of tree.inner_errors) {
      const found = find(inner);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return find(errorTree(error));
}

/** The message at the bottom of the tree: it says most. */
export function innermost(error: ErrorTree | undefined): string {
  let at = error;
  while (at?.inner_errors[0] !== undefined) at = at.inner_errors[0];
  return at?.message ?? '';
}
