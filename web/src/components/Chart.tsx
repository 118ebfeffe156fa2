/** Lines over time with uPlot: colours from the theme, values under the pointer in the legend. */

import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';

export interface Line {
  title: string;
  /** A colour variable of the style, e.g. `--mp-usage`. */
  color: string;
  values: (number | null)[];
  /** Filled down to zero. */
  filled?: boolean;
  dashed?: boolean;
  /** Pixels. */
  width?: number;
}

interface Props {
  label: string;
  /** Seconds since 1970. */
  times: number[];
  lines: Line[];
  format: (value: number) => string;
  /** Shorter, for the axis. */
  axisFormat?: (value: number) => string;
  height?: number;
  /** The axis reaches at least to here. */
  atLeast?: number;
  /** Bytes: the axis is divided by powers of two. */
  inBytes?: boolean;
  /** Instead of lines, while there are none. */
  empty?: string;
}

export function Chart({
  label,
  times,
  lines,
  format,
  axisFormat = format,
  height = 240,
  atLeast = 0,
  inBytes = false,
  empty = 'Nothing is known about this time',
}: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const shape = lines.map(line => line.title + line.color).join('|');
  // What the plot asks for while it draws; it must not be rebuilt for each new point.
  const latest = useRef<Latest>({ lines, format: axisFormat, atLeast, inBytes });
  latest.current = { lines, format: axisFormat, atLeast, inBytes };
  const isEmpty = lines.every(line => line.values.every(value => value === null));

  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const create = () => {
      plot.current?.destroy();
      plot.current = new uPlot(
        options(element, latest.current, height, setAt),
        dataOf(times, latest.current.lines),
        element,
      );
    };
    create();
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    resize.observe(element);
    const scheme = new MutationObserver(create);
    scheme.observe(document.body, { attributes: true, attributeFilter: ['class'] });
    return () => {
      resize.disconnect();
      scheme.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
    // New points go in by the effect below.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [shape, height]);

  useEffect(() => {
    plot.current?.setData(dataOf(times, lines));
  }, [times, lines]);

  return (
    <figure className="chart-figure" aria-label={label}>
      <div className="chart" ref={box} style={{ height }}>
        {isEmpty && <div className="chart__empty">{empty}</div>}
      </div>
      <div className="chart__legend">
        {lines.map(line => (
          <span key={line.title}>
            <i style={{ background: `var(${line.color})` }} />
            <span className="secondary">{line.title}</span>
            {text(line, at, format)}
          </span>
        ))}
      </div>
    </figure>
  );
}

/** Under the pointer, else the newest. */
function text(line: Line, at: number | null, format: (value: number) => string): string {
  const value = at === null ? line.values.findLast(v => v !== null) : line.values[at];
  return value === null || value === undefined ? '–' : format(value);
}

const dataOf = (times: number[], lines: Line[]): uPlot.AlignedData => [
  times,
  ...lines.map(line => line.values),
];

interface Latest {
  lines: Line[];
  format: (value: number) => string;
  atLeast: number;
  inBytes: boolean;
}

/** Distances of marks on an axis of bytes. */
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** Seconds that the time axis has at least, however few points there are. */
const SHORTEST = 60;

function options(
  element: HTMLElement,
  latest: Latest,
  height: number,
  onPointer: (at: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const faint = color('--mp-line');
  const axis = {
    stroke: color('--g-color-text-secondary'),
    grid: { stroke: faint, width: 1 },
    ticks: { stroke: faint, width: 1, size: 4 },
    font: `11px ${style.fontFamily}`,
  };
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: {
        range: (_, min, max) => [max - min < SHORTEST ? max - SHORTEST : min, max],
      },
      y: { range: (_, __, max) => [0, Math.max(max, latest.atLeast, 1e-9) * 1.06] },
    },
    axes: [
      { ...axis, size: 30, values: clock },
      {
        ...axis,
        ...(latest.inBytes ? { incrs: POWERS_OF_TWO } : {}),
        size: 64,
        values: (_: uPlot, values: number[]) => values.map(latest.format),
      },
    ],
    series: [
      {},
      ...latest.lines.map(line => ({
        label: line.title,
        stroke: color(line.color),
        width: line.width ?? 1.75,
        points: { show: false },
        ...(line.dashed === true ? { dash: [6, 4] } : {}),
        ...(line.filled === true
          ? { fill: `color-mix(in srgb, ${color(line.color)} 18%, transparent)` }
          : {}),
      })),
    ],
    hooks: { setCursor: [u => onPointer(u.cursor.idx ?? null)] },
  };
}

const two = (value: number): string => String(value).padStart(2, '0');

/** Hours and minutes, with seconds where the steps are that small, and days where they are that large. */
function clock(_: uPlot, times: number[], __: number, ___: number, increment: number): string[] {
  return times.map(seconds => {
    const at = new Date(seconds * 1_000);
    const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
    if (increment >= 86_400) return `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    return increment < 60 ? `${minutes}:${two(at.getSeconds())}` : minutes;
  });
}
