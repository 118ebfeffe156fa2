/** The stream, the clock in its place, and what each beat concerns. */

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { beatOf, streamPulse, touches, type Events, type Topic } from '../src/api/pulse';

const PERIODS = { clock: 2_000, beside: 10_000, retry: [1_000, 4_000] as [number, number] };

/** A stream whose server is the test. */
class FakeStream implements Events {
  static all: FakeStream[] = [];
  closed = false;
  private readonly listeners = new Map<string, (event: { data?: string }) => void>();
  constructor() {
    FakeStream.all.push(this);
  }
  addEventListener(name: string, listener: (event: { data?: string }) => void): void {
    this.listeners.set(name, listener);
  }
  emit(name: string, data?: object): void {
    this.listeners.get(name)?.(data === undefined ? {} : { data: JSON.stringify(data) });
  }
  close(): void {
    this.closed = true;
  }
  static get open(): FakeStream[] {
    return FakeStream.all.filter(stream => !stream.closed);
  }
}

function watch() {
  const seen: (() => void)[] = [];
  const page = {
    visibilityState: 'visible',
    addEventListener: (_: string, listener: () => void) => seen.push(listener),
    removeEventListener: () => undefined,
  };
  const beats: string[] = [];
  const sources: string[] = [];
  const pulse = streamPulse(() => new FakeStream(), page as unknown as Document, PERIODS);
  const stop = pulse.subscribe(
    beat => beats.push(beat === 'everything' ? beat : [...beat.topics].join(' ')),
    source => sources.push(source),
  );
  const show = (visible: boolean) => {
    page.visibilityState = visible ? 'visible' : 'hidden';
    seen.forEach(listener => listener());
  };
  return { beats, sources, stop, show };
}

const newest = (): FakeStream => FakeStream.all.at(-1) as FakeStream;

beforeEach(() => {
  vi.useFakeTimers();
  FakeStream.all = [];
});
afterEach(() => vi.useRealTimers());

test('events of the stream are beats, and the clock is slow beside it', () => {
  const { beats, sources } = watch();
  newest().emit('open');
  expect(sources.at(-1)).toBe('stream');
  newest().emit('changed', { topics: ['pools', 'nodes'] });
  expect(beats).toEqual(['everything', 'pools nodes']);
  vi.advanceTimersByTime(9_000);
  expect(beats).toHaveLength(2);
  vi.advanceTimersByTime(1_000);
  expect(beats.at(-1)).toBe('everything');
});

test('a stream that breaks is replaced by the clock, and tried again until it is back', () => {
  const { beats, sources } = watch();
  newest().emit('open');
  newest().emit('error');
  expect(sources.at(-1)).toBe('clock');
  expect(FakeStream.open).toHaveLength(0);
  beats.length = 0;
  vi.advanceTimersByTime(900);
  expect(FakeStream.all).toHaveLength(1);
  vi.advanceTimersByTime(100);
  expect(FakeStream.all).toHaveLength(2);
  // Each failure doubles the wait, up to the most.
  for (const [wait, streams] of [
    [2_000, 3],
    [4_000, 4],
    [4_000, 5],
  ] as const) {
    newest().emit('error');
    vi.advanceTimersByTime(wait);
    expect(FakeStream.all).toHaveLength(streams);
  }
  expect(beats.length).toBeGreaterThanOrEqual(4);
  newest().emit('open');
  expect(sources.at(-1)).toBe('stream');
  beats.length = 0;
  vi.advanceTimersByTime(8_000);
  expect(beats).toEqual([]);
});

test('a hidden page neither listens nor asks; one that is seen again asks at once', () => {
  const { beats, show, stop } = watch();
  newest().emit('open');
  show(false);
  expect(FakeStream.open).toHaveLength(0);
  beats.length = 0;
  vi.advanceTimersByTime(60_000);
  expect(beats).toEqual([]);
  show(true);
  expect(beats).toEqual(['everything']);
  expect(FakeStream.open).toHaveLength(1);
  stop();
  expect(FakeStream.open).toHaveLength(0);
  vi.advanceTimersByTime(60_000);
  expect(beats).toEqual(['everything']);
});

test('an error of a stream that was given up changes nothing', () => {
  const { show } = watch();
  const first = newest();
  show(false);
  show(true);
  first.emit('error');
  vi.advanceTimersByTime(5_000);
  expect(FakeStream.all).toHaveLength(2);
});

test('what a beat concerns', () => {
  const all = beatOf('{"topics":["operations"]}');
  const some = beatOf('{"topics":["operations","pools"],"operations":["1-2"]}');
  const cases: [ReturnType<typeof beatOf>, Topic, boolean][] = [
    [all, 'operations', true],
    [all, 'operation/1-2', true],
    [all, 'pools', false],
    [all, 'any', true],
    [some, 'operation/1-2', true],
    [some, 'operation/3-4', false],
    [some, 'pools', true],
    [some, 'nodes', false],
    [beatOf('{"topics":["nodes"]}'), 'operation/1-2', false],
    ['everything', 'operation/3-4', true],
    [beatOf('no json'), 'nodes', true],
    [beatOf('{"topics":7}'), 'nodes', true],
  ];
  for (const [beat, topic, expected] of cases) expect(touches(beat, topic), topic).toBe(expected);
});
