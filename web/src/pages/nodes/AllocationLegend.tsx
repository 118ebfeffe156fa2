/** What the colours of the map mean, and the choice of what they shall mean. */

import { SegmentedRadioGroup } from '@gravity-ui/uikit';
import type { Allocation } from '../../api/nodes';
import { legendOf, type ColorBy } from '../../model/allocations';
import { count } from '../../model/format';
import { useUrlState } from '../../model/urlState';

/** In the address. */
export function useColorBy(): ColorBy {
  const [url] = useUrlState();
  return url.get('color') === 'group' ? 'group' : 'pool';
}

export function ColorChoice() {
  const [, change] = useUrlState();
  return (
    <SegmentedRadioGroup
      aria-label="What colours mean"
      value={useColorBy()}
      onUpdate={chosen => change({ color: chosen === 'pool' ? undefined : chosen })}
    >
      <SegmentedRadioGroup.Option value="pool">By pool</SegmentedRadioGroup.Option>
      <SegmentedRadioGroup.Option value="group">By preemption</SegmentedRadioGroup.Option>
    </SegmentedRadioGroup>
  );
}

/** Above that a legend explains nothing. */
const SHOWN = 14;

export function AllocationLegend({ all, by }: { all: Allocation[]; by: ColorBy }) {
  const items = legendOf(all, by);
  if (all.length === 0) return null;
  return (
    <div className="legend" aria-label={by === 'pool' ? 'Pools by colour' : 'Groups by colour'}>
      {items.slice(0, SHOWN).map(({ title, color, count: n }) => (
        <span key={title}>
          <i className="swatch" style={{ background: color }} />
          <span className="clip legend__name" title={title}>
            {title}
          </span>
          {count(n)}
        </span>
      ))}
      {items.length > SHOWN && <span>and {count(items.length - SHOWN)} more pools</span>}
    </div>
  );
}
