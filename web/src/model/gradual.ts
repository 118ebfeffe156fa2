/**
 * Which rows of a long table are drawn in which frame. A jump, as by the scroll bar, replaces every row that is
 * in sight, and all of them at once take longer than a frame has: so only a few new ones come in each, those in
 * sight before those around them. Rows that are drawn already, and still wanted, stay.
 */

/** Rows one below the other, both ends included; none if the last is before the first. */
export interface Rows {
  first: number;
  last: number;
}

/** New rows in one frame. Wheels and keys move by fewer. */
const AT_ONCE = 10;

/** What is drawn next of the wanted rows, which include those in sight, after what is drawn now. */
export function drawnNext(now: Rows | undefined, inSight: Rows, wanted: Rows, atOnce = AT_ONCE): Rows {
  // A table that was empty until now comes as a whole: nobody is scrolling it.
  if (now === undefined || now.last < now.first) return wanted;
  let [first, last] = [Math.max(now.first, wanted.first), Math.min(now.last, wanted.last)];
  if (last < first) [first, last] = [inSight.first, inSight.first - 1];
  let left = atOnce;
  const down = (to: number) => {
    const more = Math.max(0, Math.min(left, to - last));
    last += more;
    left -= more;
  };
  const up = (to: number) => {
    const more = Math.max(0, Math.min(left, first - to));
    first -= more;
    left -= more;
  };
  down(inSight.last);
  up(inSight.first);
  down(wanted.last);
  up(wanted.first);
  return { first, last };
}

/** The rows that a table has drawn, frame by frame. */
export class Gradual {
  private drawn: Rows | undefined;
  /** Is everything drawn that is wanted? */
  isDone = true;

  /** Tells the indices of the rows to draw, of a range as the virtualizer has it; a new function for each frame. */
  frame(): (range: Range) => number[] {
    return range => {
      const { startIndex, endIndex, overscan, count } = range;
      const inSight = { first: startIndex, last: Math.min(endIndex, count - 1) };
      const wanted = {
        first: Math.max(0, startIndex - overscan),
        last: Math.min(endIndex + overscan, count - 1),
      };
      const { first, last } = (this.drawn = drawnNext(this.drawn, inSight, wanted));
      this.isDone = first === wanted.first && last === wanted.last;
      return Array.from({ length: Math.max(0, last - first + 1) }, (_, place) => first + place);
    };
  }
}

interface Range {
  /** The first and the last row in sight. */
  startIndex: number;
  endIndex: number;
  /** Rows that are drawn around them. */
  overscan: number;
  /** All rows of the table. */
  count: number;
}
