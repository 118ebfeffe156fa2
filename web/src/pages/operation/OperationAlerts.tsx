/** What an operation complains about: the alerts it has, and those it had. */

import type { Operation } from '../../api/operations';
import { Level } from '../../components/ErrorView';
import { Card, Elapsed, Time } from '../../components/Parts';
import { words } from '../../model/format';
import { alertsOf } from '../../model/operations';

export function OperationAlerts({ operation }: { operation: Operation }) {
  const { now, before } = alertsOf(operation);
  return (
    <>
      {now.length > 0 && (
        <div className="alerts">
          {now.map(({ name, since, error }) => (
            <div key={name} className="alert-line">
              <Level tree={error} />
              <span className="secondary nowrap">
                {words(name)}
                {since !== undefined && (
                  <>
                    , since <Time at={since} />
                  </>
                )}
              </span>
            </div>
          ))}
        </div>
      )}
      {before.length > 0 && (
        <Card title="Alerts that are over">
          {before.map(({ name, from, to, error }) => (
            <div key={`${name} ${to}`} className="alert-line">
              <Level tree={error} />
              <span className="secondary">
                {words(name)},{' '}
                {from !== undefined && (
                  <>
                    from <Time at={from} />{' '}
                  </>
                )}
                to <Time at={to} />
                {from !== undefined && (
                  <>
                    {' '}
                    (<Elapsed start={from} end={to} />)
                  </>
                )}
              </span>
            </div>
          ))}
        </Card>
      )}
    </>
  );
}
