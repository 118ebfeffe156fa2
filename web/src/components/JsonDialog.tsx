/** A value of the tree, changed as JSON. */

import { TextArea } from '@gravity-ui/uikit';
import { useState } from 'react';
import type { Json } from '../api/client';
import { Confirm } from './Confirm';

export function parsed(text: string): { value: Json } | { wrong: string } {
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { wrong: error instanceof Error ? error.message : String(error) };
  }
}

interface JsonDialogProps {
  title: string;
  value: Json;
  act: (value: Json) => Promise<unknown>;
  onClose: () => void;
}

export function JsonDialog({ title, value, act, onClose }: JsonDialogProps) {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const result = parsed(text);
  return (
    <Confirm
      title={title}
      verb="Save"
      size="m"
      disabled={'wrong' in result}
      act={() => ('wrong' in result ? Promise.reject(new Error(result.wrong)) : act(result.value))}
      onClose={onClose}
    >
      <JsonField label="Value as JSON" text={text} onUpdate={setText} />
    </Confirm>
  );
}

export function JsonField({
  label,
  text,
  onUpdate,
}: {
  label: string;
  text: string;
  onUpdate: (text: string) => void;
}) {
  const result = parsed(text);
  return (
    <TextArea
      value={text}
      onUpdate={onUpdate}
      minRows={4}
      maxRows={24}
      validationState={'wrong' in result ? 'invalid' : undefined}
      errorMessage={'wrong' in result ? result.wrong : undefined}
      controlProps={{ 'aria-label': label, className: 'mono', spellCheck: false }}
    />
  );
}
