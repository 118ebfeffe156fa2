/** What an operation was asked to do, in short: the whole is on its own tab. */

import { Link } from 'wouter';
import { useOnce } from '../../api/live';
import { getSpecifications } from '../../api/operations';
import { Card, Copy, Facts } from '../../components/Parts';
import { links } from '../../model/links';
import { specSummary, type PathOf, type Script } from '../../model/specSummary';

export function SpecSummary({ id }: { id: string }) {
  const { data } = useOnce(['specifications', id], () => getSpecifications(id));
  if (data === undefined) return null;
  const { description, inputs, outputs, scripts } = specSummary(data.provided_spec);
  return (
    <Card
      title="Specification"
      extra={
        <span className="card__tools">
          <Link href={links.operation(id, 'specification')}>all of it</Link>
        </span>
      }
    >
      <Facts
        items={[
          [
            'Description',
            description !== undefined &&
              (typeof description === 'string' ? description : JSON.stringify(description)),
          ],
          ['Input', inputs.length > 0 && <Paths paths={inputs} />],
          ['Output', outputs.length > 0 && <Paths paths={outputs} />],
        ]}
      />
      {scripts.slice(0, SHOWN).map(script => (
        <Command key={script.name} script={script} />
      ))}
      {scripts.length > SHOWN && <p className="secondary">and {scripts.length - SHOWN} more tasks</p>}
    </Card>
  );
}

/** More commands than this are read on the tab of the specification. */
const SHOWN = 8;

function Command({ script }: { script: Script }) {
  const { name, command, files, layers, environment } = script;
  return (
    <section className="script" aria-label={`What ${name} runs`}>
      <h3 className="script__title">
        {name} {command !== '' && <Copy text={command} what="command" />}
      </h3>
      {command !== '' && (
        <pre className="pre pre_short" tabIndex={0}>
          {command}
        </pre>
      )}
      <Facts
        items={[
          ['Files', files.length > 0 && <Paths paths={files} />],
          ['Layers', layers.length > 0 && <Paths paths={layers} />],
          [
            'Environment',
            environment.length > 0 && (
              <span className="mono">{environment.map(([key, value]) => `${key}=${value}`).join(' ')}</span>
            ),
          ],
        ]}
      />
    </section>
  );
}

function Paths({ paths }: { paths: PathOf[] }) {
  return (
    <>
      {paths.map(({ path, name }, index) => (
        <div key={`${index} ${path}`}>
          <Link href={links.tree(path)} className="mono">
            {path}
          </Link>
          {name !== undefined && <span className="secondary"> as {name}</span>}
        </div>
      ))}
    </>
  );
}
