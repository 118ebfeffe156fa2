/** Why an operation does not run, or does not run more: the explanation of the scheduler. */

import { useLive } from '../../api/live';
import { explainOperation, type OperationExplanation, type TreeExplanation } from '../../api/operations';
import { Async } from '../../components/Async';
import { StackBar } from '../../components/Bar';
import { Card, Facts, Time } from '../../components/Parts';
import { capitalized, count, duration, percent, words } from '../../model/format';
import { resourceTitle } from '../../model/resources';

export function Why({ id }: { id: string }) {
  const explanation = useLive(['pools', `operation/${id}`], ['explain operation', id], () =>
    explainOperation(id),
  );
  return (
    <Async query={explanation}>
      {data =>
        data === null ? (
          <p className="secondary">Nothing is known about it any more.</p>
        ) : (
          <Explained explanation={data} />
        )
      }
    </Async>
  );
}

function Explained({ explanation }: { explanation: OperationExplanation }) {
  const lines = explanation.text.map(line => line.trim()).filter(line => !/^Operation \S+$/.test(line));
  const [headline = '', ...others] = lines;
  const changes = others.filter(line => /^(To change|If it takes)/.test(line));
  const facts = others.filter(line => !changes.includes(line));
  return (
    <>
      <Card title={capitalized(headline.replace(/^In pool "[^"]*" of tree "[^"]*": /, ''))}>
        <ul className="why">
          {facts.map(line => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      </Card>
      {changes.length > 0 && (
        <Card title="What would change it">
          <ul className="why">
            {changes.map(line => (
              <li key={line}>{capitalized(line.replace(/^To change that: /, ''))}</li>
            ))}
          </ul>
        </Card>
      )}
      {Object.entries(explanation.trees).map(([tree, standing]) => (
        <Standing key={tree} tree={tree} standing={standing} />
      ))}
    </>
  );
}

function Standing({ tree, standing }: { tree: string; standing: TreeExplanation }) {
  const { numbers, starvation, nodes } = standing;
  const groups =
    numbers.non_preemptible_job_count +
    numbers.aggressively_preemptible_job_count +
    numbers.preemptible_job_count;
  const part = (n: number) => (groups === 0 ? 0 : n / groups);
  return (
    <div className="cards">
      <Card title={`Shares in tree ${tree}`}>
        <Facts
          items={[
            ['Pool', standing.pool],
            ['Usage', percent(numbers.usage_share)],
            ['Fair share', percent(numbers.fair_share)],
            ['Demand', percent(numbers.demand_share)],
            ['Jobs running', count(numbers.running)],
            ['More wanted', count(numbers.wanted)],
            ['Leaving', numbers.leaving > 0 && count(numbers.leaving)],
          ]}
        />
      </Card>
      {groups > 0 && (
        <Card title="How safe its jobs are">
          <StackBar
            tall
            segments={[
              {
                kind: 'good',
                part: part(numbers.non_preemptible_job_count),
                label: `${numbers.non_preemptible_job_count} protected`,
              },
              {
                kind: 'weight',
                part: part(numbers.aggressively_preemptible_job_count),
                label: `${numbers.aggressively_preemptible_job_count} give way only to aggressively starving operations`,
              },
              {
                kind: 'strong',
                part: part(numbers.preemptible_job_count),
                label: `${numbers.preemptible_job_count} give way to any starving operation`,
              },
            ]}
          />
          <Facts
            items={[
              ['Protected', count(numbers.non_preemptible_job_count)],
              ['Give way to aggressively starving ones', count(numbers.aggressively_preemptible_job_count)],
              ['Give way to any starving one', count(numbers.preemptible_job_count)],
              ['Lost so far', standing.loss_count > 0 && count(standing.loss_count)],
            ]}
          />
        </Card>
      )}
      {starvation !== undefined && (
        <Card title="Starvation">
          <Facts
            items={[
              [
                'Below its fair share since',
                starvation.below_since !== undefined && <Time at={starvation.below_since} />,
              ],
              [
                'Starving since',
                starvation.starving_since === undefined ? (
                  `not yet, after ${duration(starvation.timeout)}`
                ) : (
                  <Time at={starvation.starving_since} />
                ),
              ],
              ['Aggressively', starvation.aggressively ? 'yes' : 'no'],
            ]}
          />
        </Card>
      )}
      {nodes !== undefined && (
        <Card title={`What ${count(nodes.total)} nodes say`}>
          <Facts
            items={[
              ['Have room', count(nodes.ready)],
              ...Object.entries(nodes.by_reason).map(([reason, n]): [string, string] => [
                capitalized(words(reason)),
                count(n),
              ]),
              ...Object.entries(nodes.short).map(([resource, n]): [string, string] => [
                `Too little ${resourceTitle(resource)}`,
                count(n),
              ]),
              ['Offline', nodes.offline > 0 && count(nodes.offline)],
              ['Take no new jobs', nodes.disabled > 0 && count(nodes.disabled)],
            ]}
          />
        </Card>
      )}
    </div>
  );
}
