/** Why a pool has the share that it has: in words, and beside its siblings. */

import { Link } from 'wouter';
import { useLive } from '../../api/live';
import { explainPool, type PoolExplanation, type Sibling } from '../../api/scheduling';
import { Async } from '../../components/Async';
import { StackBar, type Segment } from '../../components/Bar';
import { Card, OperationLink } from '../../components/Parts';
import { capitalized, number, percent } from '../../model/format';
import { links } from '../../model/links';
import { amountInWords, amountOf, resourceTitle } from '../../model/resources';

export function PoolWhy({ tree, name }: { tree: string; name: string }) {
  const explanation = useLive('pools', ['explain pool', tree, name], () => explainPool(tree, name));
  return <Async query={explanation}>{data => <Explained tree={tree} explanation={data} />}</Async>;
}

function Explained({ tree, explanation }: { tree: string; explanation: PoolExplanation }) {
  const resource = explanation.dominant_resource;
  const parts = partsOf(explanation);
  const reasons = explanation.text.filter(line => /^(Why|Integral|Volume|Strong)/.test(line));
  const [headline = ''] = explanation.text;
  return (
    <>
      <Card title={headline}>
        <Scale explanation={explanation} parts={parts} />
        <ul className="why why_reasons">
          {reasons.map(line => (
            <li key={line}>{capitalized(line.replace(/^Why: /, ''))}</li>
          ))}
        </ul>
      </Card>
      {explanation.changes.length > 0 && (
        <Card title="What would change it">
          <ul className="why">
            {explanation.changes.map(line => (
              <li key={line}>{capitalized(line)}</li>
            ))}
          </ul>
        </Card>
      )}
      {explanation.siblings.length > 0 && (
        <Card title={`Shares of ${resourceTitle(resource)} in ${explanation.parent ?? 'the pool'}`}>
          <Siblings tree={tree} siblings={explanation.siblings} />
          {explanation.more_siblings > 0 && (
            <p className="secondary">and {number(explanation.more_siblings)} more</p>
          )}
          <div className="legend legend-row">
            <span>
              <i className="legend__strong" /> guaranteed
            </span>
            <span>
              <i className="legend__weight" /> by weight
            </span>
            <span>
              <i className="legend__demand" /> wanted beyond
            </span>
          </div>
        </Card>
      )}
    </>
  );
}

interface Parts {
  strong: number;
  integral: number;
  weight: number;
  total: number;
  demand: number;
  usage: number;
}

/** Of the resource that counts. */
function partsOf(explanation: PoolExplanation): Parts {
  const resource = explanation.dominant_resource;
  const fair = explanation.detailed_fair_share;
  return {
    strong: amountOf(fair.strong_guarantee, resource),
    integral: amountOf(fair.integral_guarantee, resource),
    weight: amountOf(fair.weight_proportional, resource),
    total: amountOf(fair.total, resource),
    demand: amountOf(explanation.limited_demand_share, resource),
    usage: amountOf(explanation.usage_share, resource),
  };
}

function Scale({ explanation, parts }: { explanation: PoolExplanation; parts: Parts }) {
  const resource = explanation.dominant_resource;
  const whole = amountOf(explanation.total_resource_limits, resource);
  const scale = Math.max(0.05, Math.min(1, Math.max(parts.total, parts.demand, parts.usage)));
  const unmet = Math.max(0, Math.min(parts.demand, 1) - parts.total);
  const said = (share: number) => `${percent(share)} (${amountInWords(resource, share * whole)})`;
  const segments: Segment[] = [
    { kind: 'strong', part: parts.strong, label: `strong guarantee ${said(parts.strong)}` },
    { kind: 'integral', part: parts.integral, label: `integral guarantee ${said(parts.integral)}` },
    { kind: 'weight', part: parts.weight, label: `weight ${said(parts.weight)}` },
    { kind: 'demand', part: unmet, label: `wanted beyond ${said(unmet)}` },
  ];
  const rows: [string, string, number][] = [
    ['legend__strong', 'by strong guarantee', parts.strong],
    ['legend__integral', 'by integral guarantee', parts.integral],
    ['legend__weight', 'by weight', parts.weight],
    ['legend__demand', 'wanted beyond', unmet],
    ['legend__usage', 'in use', parts.usage],
  ];
  return (
    <>
      <StackBar segments={segments} scale={scale} tall />
      <div className="why__usage">
        <StackBar
          segments={[{ kind: 'usage', part: parts.usage, label: `in use ${said(parts.usage)}` }]}
          scale={scale}
        />
      </div>
      <div className="legend legend-row">
        {rows
          .filter(([, , share]) => share > 0)
          .map(([className, title, share]) => (
            <span key={title}>
              <i className={className} /> {title}: {said(share)}
            </span>
          ))}
      </div>
    </>
  );
}

function Siblings({ tree, siblings }: { tree: string; siblings: Sibling[] }) {
  const scale = Math.max(
    0.05,
    Math.min(1, Math.max(...siblings.map(s => Math.max(s.fair_share, Math.min(s.demand, 1))))),
  );
  return (
    <div className="siblings">
      {siblings.map(sibling => {
        const guaranteed = Math.min(sibling.guarantee, sibling.fair_share);
        const segments: Segment[] = [
          { kind: 'strong', part: guaranteed, label: `guaranteed ${percent(guaranteed)}` },
          {
            kind: 'weight',
            part: sibling.fair_share - guaranteed,
            label: `by weight ${percent(sibling.fair_share - guaranteed)}`,
          },
          {
            kind: 'demand',
            part: Math.max(0, Math.min(sibling.demand, 1) - sibling.fair_share),
            label: `wanted ${percent(sibling.demand)}`,
          },
        ];
        return (
          <div className="siblings__row" key={sibling.id}>
            <span className="clip" title={sibling.id}>
              {sibling.is_self ? (
                <b>{sibling.id}</b>
              ) : sibling.is_pool ? (
                <Link href={links.pool(tree, sibling.id)}>{sibling.id}</Link>
              ) : (
                <OperationLink id={sibling.id} />
              )}
            </span>
            <StackBar segments={segments} scale={scale} />
            <span className="numbers nowrap">
              {percent(sibling.fair_share)}{' '}
              <span className="secondary">
                of {percent(sibling.demand)}, weight {number(sibling.weight)}
              </span>
            </span>
          </div>
        );
      })}
    </div>
  );
}
