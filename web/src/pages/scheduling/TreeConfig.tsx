/** All options of a tree of pools at once, as JSON. What the server refuses changes nothing, and is shown. */

import { useState } from 'react';
import { useOnce } from '../../api/live';
import { poolPath } from '../../api/scheduling';
import { setValue, value as askValue } from '../../api/tree';
import { Async } from '../../components/Async';
import { JsonDialog } from '../../components/JsonDialog';

export function TreeConfig({ tree, onClose }: { tree: string; onClose: () => void }) {
  const path = `${poolPath(tree, [])}/@config`;
  // Asked anew at each opening: somebody else may have changed it.
  const [opened] = useState(() => Date.now());
  const config = useOnce(['tree config', path, opened], () => askValue(path));
  return (
    <Async query={config}>
      {value => (
        <JsonDialog
          title={`Options of the tree ${tree}`}
          value={value}
          act={to => setValue(path, to)}
          onClose={onClose}
        />
      )}
    </Async>
  );
}
