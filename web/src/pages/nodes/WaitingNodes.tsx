/** Nodes without a join token that ask to be let in. Only administrators are shown them. */

import { Button } from '@gravity-ui/uikit';
import { useState } from 'react';
import { useLive } from '../../api/live';
import { approveNode, waitingNodes, type WaitingNode } from '../../api/nodes';
import { Allowed } from '../../api/session-context';
import { Confirm } from '../../components/Confirm';
import { Card, Time } from '../../components/Parts';

export function WaitingNodes() {
  return (
    <Allowed to="administer" at="/">
      <Waiting />
    </Allowed>
  );
}

function Waiting() {
  const waiting = useLive('nodes', ['waiting nodes'], waitingNodes);
  const [chosen, setChosen] = useState<WaitingNode>();
  const all = waiting.data ?? [];
  return (
    <>
      {all.length > 0 && (
        <Card title="Nodes that wait for an approval">
          <ul className="why" aria-label="Nodes that wait for an approval">
            {all.map(node => (
              <li key={node.key_sha256}>
                <Button view="outlined" onClick={() => setChosen(node)}>
                  Approve
                </Button>
                <div>
                  <b>{node.name}</b>{' '}
                  <span className="secondary">
                    {node.address !== undefined && `from ${node.address}, `}since{' '}
                    <Time at={node.creation_time} />
                  </span>
                  <div className="mono">{node.key_sha256}</div>
                </div>
              </li>
            ))}
          </ul>
        </Card>
      )}
      {chosen !== undefined && (
        <Confirm
          title={`Approve ${chosen.name}`}
          verb="Approve"
          size="m"
          act={() => approveNode(chosen.name, chosen.key_sha256)}
          onClose={() => setChosen(undefined)}
        >
          <p>
            The node gets jobs of all users, with their secrets. Anybody who reaches the server can ask under
            any name: approve only the node whose log shows this key.
          </p>
          <p className="mono">{chosen.key_sha256}</p>
        </Confirm>
      )}
    </>
  );
}
