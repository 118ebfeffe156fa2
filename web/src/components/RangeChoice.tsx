/** How far back charts reach: kept in the address, chosen at the head of a card. */

import { SegmentedRadioGroup } from '@gravity-ui/uikit';
import { rangeOf, RANGES, type Range } from '../model/history';
import { useUrlState } from '../model/urlState';

export function useRange(): Range {
  const [url] = useUrlState();
  return rangeOf(url.get('range'));
}

export function RangeChoice() {
  const [, change] = useUrlState();
  const range = useRange();
  return (
    <span className="card__tools">
      <SegmentedRadioGroup
        size="s"
        aria-label="How far back"
        value={range.id}
        onUpdate={id => change({ range: id === RANGES[0].id ? undefined : id })}
      >
        {RANGES.map(r => (
          <SegmentedRadioGroup.Option key={r.id} value={r.id}>
            {r.title}
          </SegmentedRadioGroup.Option>
        ))}
      </SegmentedRadioGroup>
    </span>
  );
}
