/** An error with all that is inside it. */

import { CircleExclamation } from '@gravity-ui/icons';
import { ClipboardButton, Icon } from '@gravity-ui/uikit';
import { useState } from 'react';
import { errorTree, type ErrorTree } from '../api/errors';

export function ErrorView({ error }: { error: unknown }) {
  const tree = errorTree(error);
  return (
    <div className="error" role="alert">
      <div className="error__head">
        <Icon data={CircleExclamation} className="bad" />
        <Level tree={tree} />
        <ClipboardButton
          view="flat"
          size="s"
          text={JSON.stringify(tree, null, 2)}
          tooltipInitialText="Copy as JSON"
        />
      </div>
    </div>
  );
}

/** The same without a frame of its own, e.g. in a table. */
export function Level({ tree }: { tree: ErrorTree }) {
  const [open, setOpen] = useState(false);
  const attributes = Object.entries(tree.attributes);
  return (
    <div className="error__message">
      <div>
        {tree.message}
        {tree.code > 1 && <span className="secondary"> (code {tree.code})</span>}
        {attributes.length > 0 && (
          <>
            {' '}
            <button type="button" className="error__more" aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? 'less' : 'details'}
            </button>
          </>
        )}
      </div>
      {open && (
        <dl className="facts error__attributes">
          {attributes.map(([name, value]) => (
            <Attribute key={name} name={name} value={value} />
          ))}
        </dl>
      )}
      {tree.inner_errors.map((inner, index) => (
        <div className="error__inner" key={index}>
          <Level tree={inner} />
        </div>
      ))}
    </div>
  );
}

function Attribute({ name, value }: { name: string; value: unknown }) {
  return (
    <>
      <dt>{name}</dt>
      <dd className="mono">{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
    </>
  );
}
