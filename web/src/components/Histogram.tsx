/** A memory digest as a picture: how many jobs used how much of their limit, and what is reserved for that. */

import type { MemoryDigest } from '../api/operations';
import { barsOf } from '../model/digest';
import { count, percent, plural } from '../model/format';

interface Props {
  digest: MemoryDigest;
  /** A factor to be pointed out, beside that of new jobs. */
  mark?: { at: number; title: string };
}

export function Histogram({ digest, mark }: Props) {
  const { bars, place } = barsOf(digest);
  const value = percent(digest.value);
  const told =
    digest.samples === 0
      ? `No job has ended yet: ${value} of the limit is reserved by default.`
      : `${plural(digest.samples, 'job')} ended. ${value} of the limit is reserved: enough for ${percent(digest.quantile)} of them.`;
  return (
    <figure className="histogram-figure" aria-label={told}>
      <div className="histogram" aria-hidden>
        {bars.map(bar => (
          <i
            key={bar.from}
            className="histogram__bar"
            title={`${plural(bar.count, 'job')}: ${percent(bar.lower)} to ${percent(bar.upper)} of the limit`}
            style={{
              left: `${bar.from * 100}%`,
              width: `max(2px, ${(bar.to - bar.from) * 100}% - 1px)`,
              height: `max(2px, ${bar.height * 100}%)`,
            }}
          />
        ))}
        <i
          className="histogram__mark"
          title={`new jobs: ${value}`}
          style={{ left: `${place(digest.value) * 100}%` }}
        />
        {mark !== undefined && (
          <i
            className="histogram__mark histogram__mark_own"
            title={`${mark.title}: ${percent(mark.at)}`}
            style={{ left: `${place(mark.at) * 100}%` }}
          />
        )}
      </div>
      <div className="histogram__axis numbers secondary" aria-hidden>
        <span>{percent(digest.lower_bound)}</span>
        <span>of the limit</span>
        <span>{percent(digest.upper_bound)}</span>
      </div>
      <div className="legend legend-row">
        <span>
          <i className="legend__usage" /> {count(digest.samples)} ended
        </span>
        <span>
          <i className="legend__guarantee" /> new jobs {value}
        </span>
        {mark !== undefined && (
          <span>
            <i className="legend__own" /> {mark.title} {percent(mark.at)}
          </span>
        )}
      </div>
      <figcaption className="secondary">{told}</figcaption>
    </figure>
  );
}
