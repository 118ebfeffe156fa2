/** The question before a pool is removed. */

import { useState } from 'react';
import { pool as askPool, poolPath, removePool } from '../../api/scheduling';
import { useOnce } from '../../api/live';
import { Confirm } from '../../components/Confirm';
import { Loading } from '../../components/Async';
import { count } from '../../model/format';
import { pathOf, type Pools } from '../../model/pools';

export function Remove({
  tree,
  pools,
  name,
  onClose,
  onDone,
}: {
  tree: string;
  pools: Pools;
  name: string;
  onClose: () => void;
  onDone?: () => void;
}) {
  const [opened] = useState(() => Date.now());
  const { data } = useOnce(['pool to remove', tree, name, opened], () => askPool(tree, name));
  const inside = data?.child_pool_count ?? 0;
  return (
    <Confirm
      title={`Remove ${name}?`}
      verb="Remove"
      danger
      disabled={data === undefined || inside > 0}
      act={() => removePool(poolPath(tree, pathOf(pools, name)))}
      onClose={onClose}
      onDone={onDone ?? onClose}
    >
      {data === undefined ? (
        <Loading />
      ) : inside > 0 ? (
        <p>It has {inside === 1 ? 'a pool' : `${count(inside)} pools`} inside. Remove or move those first.</p>
      ) : (data.operation_count ?? 0) > 0 ? (
        <p>
          {count(data.operation_count)} operations are in it. They go on without its settings, in an ephemeral
          pool of the same name below the root.
        </p>
      ) : (
        <p>Its settings are lost. It has no operations.</p>
      )}
    </Confirm>
  );
}
