/** The states of an operation one after another: when each began, and how long it lasted. */

import type { Operation } from '../../api/operations';
import { Time } from '../../components/Parts';
import { duration, words } from '../../model/format';
import { isFinished, phasesOf } from '../../model/operations';

const COLORS = [
  'var(--mp-demand)',
  'var(--mp-fair)',
  'var(--mp-usage)',
  'var(--mp-integral)',
  'var(--mp-guarantee)',
];

export function Phases({ operation }: { operation: Operation }) {
  const events = operation.events ?? [];
  const phases = phasesOf(events, Date.now(), operation.finish_time);
  const total = phases.reduce((sum, phase) => sum + phase.ms, 0);
  return (
    <>
      {total > 0 && (
        <div
          className="phases"
          role="img"
          aria-label={phases.map(phase => `${words(phase.state)} ${duration(phase.ms)}`).join(', ')}
        >
          {phases.map((phase, index) => (
            <span
              key={index}
              title={`${words(phase.state)} ${duration(phase.ms)}`}
              style={{ width: `${(phase.ms / total) * 100}%`, background: colorOf(phase.state, index) }}
            />
          ))}
        </div>
      )}
      <div className="sheet-box" tabIndex={0}>
        <table className="sheet events" aria-label="Events">
          <thead>
            <tr>
              <th>State</th>
              <th>At</th>
              <th className="right">lasted</th>
            </tr>
          </thead>
          <tbody>
            {events.map((event, index) => {
              const next = events[index + 1]?.time ?? operation.finish_time;
              const until = next === undefined ? Date.now() : Date.parse(next);
              const place = phases.findIndex(phase => phase.at === event.time && phase.state === event.state);
              return (
                <tr key={index}>
                  <td>
                    {place >= 0 && (
                      <i className="swatch" style={{ background: colorOf(event.state, place) }} />
                    )}
                    {words(event.state)}
                  </td>
                  <td>
                    <Time at={event.time} />
                  </td>
                  <td className="right">
                    {isFinished(event.state) ? '' : duration(Math.max(0, until - Date.parse(event.time)))}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

const colorOf = (state: string, index: number): string =>
  state === 'running' ? 'var(--mp-usage)' : (COLORS[index % COLORS.length] ?? '');
