/** What an administrator sets on a node: its tags, and other amounts of resources than it reports. */

import { TextInput } from '@gravity-ui/uikit';
import { useState } from 'react';
import { setNode, type Node, type NodeSettings } from '../../api/nodes';
import { Confirm } from '../../components/Confirm';
import { editedAmount, isWrong, parseAmount } from '../../model/amounts';
import { amount, amountOf, present, resourceTitle } from '../../model/resources';

interface Props {
  address: string;
  node: Node;
  settings: NodeSettings;
  onClose: () => void;
}

export function NodeEditor({ address, node, settings, onClose }: Props) {
  const resources = present(node.resource_limits);
  const before = settings.resource_limits_overrides;
  const [tags, setTags] = useState(settings.user_tags.join(', '));
  const [texts, setTexts] = useState<Record<string, string>>(() =>
    Object.fromEntries(resources.map(name => [name, editedAmount(name, before[name])])),
  );
  const overrides: Record<string, number> = {};
  const wrong: Record<string, string> = {};
  for (const name of resources) {
    const value = parseAmount(name, texts[name] ?? '');
    if (isWrong(value)) wrong[name] = value.wrong;
    else if (value !== undefined) overrides[name] = value;
  }
  const newTags = tags.split(/[\s,]+/).filter(tag => tag !== '');
  const tagsChanged = newTags.join(',') !== settings.user_tags.join(',');
  const limitsChanged = resources.some(name => overrides[name] !== before[name]);
  return (
    <Confirm
      title={`Settings of ${address}`}
      verb="Save"
      disabled={Object.keys(wrong).length > 0 || !(tagsChanged || limitsChanged)}
      act={async () => {
        if (tagsChanged) await setNode(address, 'user_tags', newTags);
        if (limitsChanged) await setNode(address, 'resource_limits_overrides', overrides);
      }}
      onClose={onClose}
    >
      <div className="form">
        <label htmlFor="node-tags">Tags</label>
        <div>
          <TextInput id="node-tags" value={tags} onUpdate={setTags} />
          <div className="form__hint">
            Beside those that the node reports. Operations and trees choose nodes by tags.
          </div>
        </div>
        {resources.map(name => (
          <NodeLimit
            key={name}
            name={name}
            text={texts[name] ?? ''}
            wrong={wrong[name]}
            reports={amount(name, amountOf(node.resource_limits, name))}
            onUpdate={text => setTexts({ ...texts, [name]: text })}
          />
        ))}
        <span />
        <div className="form__hint">Below what is in use, jobs are asked to leave.</div>
      </div>
    </Confirm>
  );
}

interface LimitProps {
  name: string;
  text: string;
  wrong: string | undefined;
  reports: string;
  onUpdate: (text: string) => void;
}

function NodeLimit({ name, text, wrong, reports, onUpdate }: LimitProps) {
  return (
    <>
      <label htmlFor={`node-${name}`}>{resourceTitle(name)}</label>
      <TextInput
        id={`node-${name}`}
        value={text}
        onUpdate={onUpdate}
        placeholder={`${reports}, as it is`}
        hasClear
        validationState={wrong === undefined ? undefined : 'invalid'}
        errorMessage={wrong}
      />
    </>
  );
}
