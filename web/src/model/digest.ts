/** The bars of a digest's picture. Its buckets grow by a factor, so the axis is logarithmic. */

import type { MemoryDigest } from '../api/operations';

export interface DigestBar {
  /** Factors of the limit. */
  lower: number;
  upper: number;
  count: number;
  /** Places on the axis and part of the tallest, 0 to 1. */
  from: number;
  to: number;
  height: number;
}

export function barsOf(digest: MemoryDigest): { bars: DigestBar[]; place: (factor: number) => number } {
  const width = Math.log(digest.upper_bound / digest.lower_bound);
  const place = (factor: number): number => {
    // Bounds may be the same: then there is one place only.
    if (!(width > 0)) return 0;
    return Math.min(1, Math.max(0, Math.log(factor / digest.lower_bound) / width));
  };
  const histogram = digest.histogram ?? [];
  const tallest = Math.max(1, ...histogram.map(bar => bar.count));
  const bars = histogram.map(({ lower, upper, count }) => ({
    lower,
    upper,
    count,
    from: place(lower),
    to: width > 0 ? place(upper) : 1,
    height: count / tallest,
  }));
  return { bars, place };
}
