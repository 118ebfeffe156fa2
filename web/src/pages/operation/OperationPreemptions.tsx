/** Preemptions that an operation suffered and caused. */

import { useLive } from '../../api/live';
import { preemptions, type Operation } from '../../api/operations';
import { Async } from '../../components/Async';
import { PreemptionTable } from '../../components/PreemptionTable';
import { placesOf } from '../../model/operations';

export function OperationPreemptions({ operation }: { operation: Operation }) {
  const trees = placesOf(operation).map(place => place.tree);
  const log = useLive('preemptions', ['preemptions', trees], async () =>
    (await Promise.all(trees.map(preemptions))).flat(),
  );
  return (
    <Async query={log}>
      {all => {
        const suffered = all.filter(p => p.operation_id === operation.id);
        const caused = all.filter(p => p.preempted_for?.operation_id === operation.id);
        return (
          <>
            <h2 className="card__title">Suffered</h2>
            <PreemptionTable rows={suffered} empty="Nothing was taken from it." />
            <h2 className="card__title">Caused</h2>
            <PreemptionTable rows={caused} empty="Nothing was taken from others for it." />
          </>
        );
      }}
    </Async>
  );
}
