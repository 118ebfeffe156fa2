/** Numbers, sizes, times as people read them. Empty text for what is not known. */

/** Three significant digits, but no rounding of the whole part: `0.333`, `12.5`, `1234`. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return '';
  if (!Number.isFinite(value) || Math.abs(value) >= 1e9) return value > 0 ? '∞' : '-∞';
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return grouped(trimmed(value.toFixed(digits)));
}

const trimmed = (text: string): string => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);

/** Thin spaces between thousands, from five digits on. */
function grouped(text: string): string {
  const [whole = '', fraction] = text.split('.');
  const spaced = whole.replace('-', '').length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, '\u2009') : whole;
  return fraction === undefined ? spaced : `${spaced}.${fraction}`;
}

/** A whole number with its thousands apart. */
export const count = (value: number | undefined): string =>
  value === undefined ? '' : grouped(String(value));

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return '';
  let size = Math.abs(value);
  let unit = 0;
  while (size >= 1023.995 && unit < BINARY.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${value < 0 ? '-' : ''}${trimmed(size.toFixed(digits))} ${BINARY[unit]}`;
}

/** A share of the cluster: `0 %`, `0.42 %`, `12.5 %`, `100 %`. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined || Number.isNaN(share)) return '';
  if (share >= 1e6) return '∞';
  const value = share * 100;
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 1 ? 1 : size >= 0.01 || size === 0 ? 2 : 3;
  return `${trimmed(value.toFixed(digits))} %`;
}

/** The two largest units: `850 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return '';
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${trimmed((ms / 1_000).toFixed(1))} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const pair = (value: number, large: string, size: number, small: string, smallSize: number) => {
    const rest = Math.floor((value % size) / smallSize);
    return `${Math.floor(value / size)} ${large}${rest > 0 ? ` ${rest} ${small}` : ''}`;
  };
  if (seconds < 3_600) return pair(seconds, 'min', 60, 's', 1);
  if (seconds < 86_400) return pair(seconds, 'h', 3_600, 'min', 60);
  return pair(seconds, 'd', 86_400, 'h', 3_600);
}

export const seconds = (value: number | null | undefined): string =>
  value === null || value === undefined ? '' : duration(value * 1_000);

const two = (value: number): string => String(value).padStart(2, '0');

/** Time of the clock on the wall, in the time zone of the reader; the date unless it is today. */
export function time(iso: string | undefined, now: Date = new Date()): string {
  if (iso === undefined) return '';
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  if (at.toDateString() === now.toDateString()) return clock;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock}`;
}

/** Milliseconds between two times; up to now without an end. */
export function elapsed(
  start: string | undefined,
  end?: string,
  now: number = Date.now(),
): number | undefined {
  if (start === undefined) return undefined;
  const until = end === undefined ? now : Date.parse(end);
  return Math.max(0, until - Date.parse(start));
}

/** `5 s ago`. */
export function ago(iso: string | undefined, now: number = Date.now()): string {
  const passed = elapsed(iso, undefined, now);
  return passed === undefined ? '' : passed < 1_000 ? 'just now' : `${duration(passed)} ago`;
}

/** `fair_share` and `below-fair-share` as words. */
export const words = (name: string): string => name.replace(/[_-]+/g, ' ');

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const collator = new Intl.Collator('en', { numeric: true });

/** Order of names: `shard 2` before `shard 10`. One collator for all: making one takes longer than to compare. */
export const compareNames = (a: string, b: string): number => collator.compare(a, b);

/** The beginning of an id: enough to tell it from others on a page. */
export const shortId = (id: string): string => id.split('-')[0] ?? id;

/** `1 job`, `2 jobs`. */
export const plural = (n: number, word: string): string => `${count(n)} ${word}${n === 1 ? '' : 's'}`;
