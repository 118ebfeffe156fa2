/** Bars: usage inside fair share inside demand, and simpler ones. */

import { percent } from '../model/format';
import type { Bar as Shares } from '../model/columns';

const width = (share: number, scale: number): { width: string } => ({
  width: `${Math.min(100, Math.max(0, (share / scale) * 100))}%`,
});

interface ShareBarProps extends Shares {
  /** Share at the right end of the bar. */
  scale?: number;
  tall?: boolean;
}

export function ShareBar({ usage, fair, demand, guarantee, scale = 1, tall = false }: ShareBarProps) {
  const text = `used ${percent(usage)}, fair share ${percent(fair)}, demand ${percent(demand)}, guarantee ${percent(guarantee)}`;
  return (
    <div className={tall ? 'bar bar_tall' : 'bar'} role="img" aria-label={text} title={text}>
      <i className="bar__demand" style={width(demand, scale)} />
      <i className="bar__fair" style={width(fair, scale)} />
      <i className="bar__usage" style={width(usage, scale)} />
      {guarantee > 0 && (
        <i
          className="bar__guarantee"
          style={{ left: `calc(${Math.min(100, (guarantee / scale) * 100)}% - 2px)` }}
        />
      )}
    </div>
  );
}

interface PartBarProps {
  part: number;
  kind?: 'plain' | 'volume' | 'full' | 'good';
  label: string;
}

/** One part of a whole. */
export function PartBar({ part, kind = 'plain', label }: PartBarProps) {
  return (
    <div className="bar" role="img" aria-label={label} title={label}>
      <i className={`bar__${kind}`} style={width(part, 1)} />
    </div>
  );
}

interface UsedBarProps {
  /** Parts of the limit. */
  used: number;
  peak: number;
  promised: number | undefined;
  label: string;
}

/** What is used of a limit, the most that was used, and what is guaranteed of it. */
export function UsedBar({ used, peak, promised, label }: UsedBarProps) {
  return (
    <div className="bar" role="img" aria-label={label} title={label}>
      <i className="bar__fair" style={width(peak, 1)} />
      <i className="bar__usage" style={width(used, 1)} />
      {promised !== undefined && (
        <i className="bar__guarantee" style={{ left: `calc(${Math.min(100, promised * 100)}% - 2px)` }} />
      )}
    </div>
  );
}

export interface Segment {
  kind: 'strong' | 'integral' | 'weight' | 'demand' | 'usage' | 'good' | 'full' | 'plain';
  part: number;
  label: string;
}

/** Parts one after another. */
export function StackBar({
  segments,
  scale = 1,
  tall = false,
}: {
  segments: Segment[];
  scale?: number;
  tall?: boolean;
}) {
  const text = segments.map(segment => segment.label).join(', ');
  const starts = segments.map((_, index) => segments.slice(0, index).reduce((sum, s) => sum + s.part, 0));
  return (
    <div className={tall ? 'bar bar_tall' : 'bar'} role="img" aria-label={text} title={text}>
      {segments.map(
        (segment, index) =>
          segment.part > 0 && (
            <i
              key={segment.label}
              className={`bar__${segment.kind}`}
              style={{
                left: `${((starts[index] ?? 0) / scale) * 100}%`,
                ...width(segment.part, scale),
                top: 0,
                bottom: 0,
              }}
            />
          ),
      )}
    </div>
  );
}

/** The meaning of the colours of [`ShareBar`]. */
export function ShareLegend() {
  return (
    <div className="legend">
      <span>
        <i className="legend__usage" /> usage
      </span>
      <span>
        <i className="legend__fair" /> fair share
      </span>
      <span>
        <i className="legend__demand" /> demand
      </span>
      <span>
        <i className="legend__guarantee" /> guarantee
      </span>
    </div>
  );
}
