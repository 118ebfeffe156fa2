/** Any value as a tree that opens and closes, with a search and copies as YSON and JSON. */

import { Magnifier } from '@gravity-ui/icons';
import { ClipboardButton, Icon, TextInput } from '@gravity-ui/uikit';
import { useMemo, useState } from 'react';
import type { Json } from '../api/client';
import { plural } from '../model/format';
import { linesOf, type Line } from '../model/valueTree';
import { prettyYson } from '../model/yson';

interface Props {
  value: Json;
  /** Levels that are open at first. */
  depth?: number;
  label: string;
}

export function Value({ value, depth = 3, label }: Props) {
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [search, setSearch] = useState('');
  const lines = useMemo(() => linesOf(value, { depth, toggled, search }), [value, depth, toggled, search]);
  const found = search === '' ? 0 : lines.filter(line => line.found).length;
  const toggle = (path: string) => {
    const next = new Set(toggled);
    if (!next.delete(path)) next.add(path);
    setToggled(next);
  };
  return (
    <div className="card">
      <div className="toolbar">
        <TextInput
          className="toolbar__filter"
          size="s"
          value={search}
          onUpdate={setSearch}
          hasClear
          placeholder="Search keys and values"
          controlProps={{ 'aria-label': `Search in ${label}` }}
          startContent={<Icon data={Magnifier} size={12} className="find-icon" />}
        />
        {search !== '' && <span className="secondary">{plural(found, 'line')}</span>}
        <div className="toolbar__space" />
        <Copied text={prettyYson(value)} as="YSON" />
        <Copied text={JSON.stringify(value, null, 2)} as="JSON" />
      </div>
      <div className="value" role="region" aria-label={label} tabIndex={0}>
        {lines.map(line => (
          <LineView key={line.path + line.kind} line={line} onToggle={toggle} />
        ))}
      </div>
    </div>
  );
}

function Copied({ text, as }: { text: string; as: string }) {
  return (
    <ClipboardButton
      size="s"
      view="flat"
      text={text}
      tooltipInitialText={`Copy as ${as}`}
      aria-label={`Copy as ${as}`}
    >
      {as}
    </ClipboardButton>
  );
}

function LineView({ line, onToggle }: { line: Line; onToggle: (path: string) => void }) {
  const indent = '  '.repeat(line.depth);
  const name =
    line.name === undefined ? null : (
      <>
        <span className="value__key">{line.name}</span>
        <span className="secondary"> = </span>
      </>
    );
  return (
    <div className={line.found ? 'value__line value__line_found' : 'value__line'}>
      {indent}
      {line.kind === 'open' || line.kind === 'closed' ? (
        <button
          type="button"
          className="value__toggle"
          aria-expanded={line.kind === 'open'}
          onClick={() => onToggle(line.path)}
        >
          <span className="secondary">{line.kind === 'open' ? '▾ ' : '▸ '}</span>
          {name}
          <span className="secondary">{line.text}</span>
        </button>
      ) : (
        <>
          {line.kind === 'end' ? '' : '  '}
          {name}
          <span className={CLASSES[line.type]}>{line.text}</span>
        </>
      )}
    </div>
  );
}

const CLASSES: Record<Line['type'], string> = {
  string: 'value__string',
  number: 'value__number',
  other: 'value__other',
  bracket: 'secondary',
};
