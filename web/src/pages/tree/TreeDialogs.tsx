/** Dialogs that change the tree. Values are typed as JSON. */

import { Button, Select, TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import type { Json } from '../../api/client';
import { useOnce } from '../../api/live';
import * as api from '../../api/tree';
import { Async } from '../../components/Async';
import { Confirm } from '../../components/Confirm';
import { JsonDialog, JsonField, parsed } from '../../components/JsonDialog';

interface Props {
  path: string;
  onClose: () => void;
}

const TYPES = [
  'map_node',
  'document',
  'string_node',
  'int64_node',
  'double_node',
  'boolean_node',
  'list_node',
];

export function CreateNode({ path, onClose }: Props) {
  const [name, setName] = useState('');
  const [type, setType] = useState('map_node');
  return (
    <Confirm
      title={`Create inside ${path}`}
      verb="Create"
      disabled={name === ''}
      act={() => api.create(type, api.child(path, name))}
      onClose={onClose}
    >
      <div className="form">
        <label htmlFor="create-name">Name</label>
        <TextInput id="create-name" value={name} onUpdate={setName} autoFocus />
        <span className="form__label">Type</span>
        <Select
          value={[type]}
          options={TYPES.map(value => ({ value, content: value }))}
          width="max"
          aria-label="Type"
          onUpdate={([chosen]) => setType(chosen ?? 'map_node')}
        />
      </div>
    </Confirm>
  );
}

export function EditValue({ path, onClose }: Props) {
  const [opened] = useState(() => Date.now());
  const current = useOnce(['value to edit', path, opened], () => api.value(path));
  return (
    <Async query={current}>
      {value => (
        <JsonDialog
          title={`Value of ${path}`}
          value={value}
          act={to => api.setValue(path, to)}
          onClose={onClose}
        />
      )}
    </Async>
  );
}

export function EditAttribute({ path, attributes, onClose }: Props & { attributes: Record<string, Json> }) {
  const [name, setName] = useState('');
  const [text, setText] = useState('');
  const choose = (to: string) => {
    setName(to);
    if (attributes[to] !== undefined) setText(JSON.stringify(attributes[to], null, 2));
  };
  const result = parsed(text);
  return (
    <Confirm
      title={`Attribute of ${path}`}
      verb="Set"
      size="m"
      disabled={name === '' || 'wrong' in result}
      act={() =>
        'wrong' in result
          ? Promise.reject(new Error(result.wrong))
          : api.setAttribute(path, name, result.value)
      }
      onClose={onClose}
    >
      <div className="form">
        <label htmlFor="attribute-name">Name</label>
        <TextInput id="attribute-name" value={name} onUpdate={choose} autoFocus />
        <span className="form__label">Value as JSON</span>
        <JsonField label="Value as JSON" text={text} onUpdate={setText} />
        {attributes[name] !== undefined && (
          <>
            <span />
            <div>
              <Button
                view="outlined-danger"
                onClick={() => void api.removeAttribute(path, name).then(onClose)}
              >
                Remove this attribute
              </Button>
            </div>
          </>
        )}
      </div>
    </Confirm>
  );
}
