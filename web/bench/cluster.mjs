/** The cluster of a benchmark: requests, pools and operations. */

const API = process.env.MILLPOND_URL;

export async function command(name, parameters) {
  const response = await fetch(`${API}/api/v4/${name}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(parameters),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer;
}

export async function batch(requests) {
  const { results } = await command('execute_batch', { requests });
  const failed = results.find(result => result.error !== undefined);
  if (failed !== undefined) throw new Error(JSON.stringify(failed.error));
  return results.map(result => result.output);
}

export const set = (path, input) => batch([{ command: 'set', parameters: { path }, input }]);

export const pool = (name, parent, more = {}) => ({
  command: 'create',
  parameters: {
    type: 'scheduler_pool',
    attributes: { name, parent_name: parent, pool_tree: 'physical', ...more },
  },
});

export const operation = (poolName, title, task) => ({
  command: 'start_operation',
  parameters: {
    operation_type: 'vanilla',
    spec: { pool: poolName, title, tasks: { work: { memory_limit: 64 << 20, ...task } } },
  },
});

/** Does something again and again, until it is told to stop; says how often it did. */
export function keep(act, every) {
  let on = true;
  let done = 0;
  const loop = (async () => {
    for (; on; done += 1) {
      await act(done);
      await new Promise(resolve => setTimeout(resolve, every));
    }
  })();
  return async () => {
    on = false;
    await loop;
    return done;
  };
}
