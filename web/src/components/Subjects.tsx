/** A choice of users and groups. Names that nobody has any more stay, until somebody takes them away. */

import { Select } from '@gravity-ui/uikit';
import { useState } from 'react';
import { useOnce } from '../api/live';
import { subjects as askSubjects } from '../api/subjects';
import { namesOffered } from '../model/choices';

interface Props {
  label: string;
  value: string[];
  onUpdate: (names: string[]) => void;
  /** A group is no member of itself. */
  except?: string;
  placeholder?: string;
}

export function Subjects({ label, value, onUpdate, except, placeholder = 'users, groups' }: Props) {
  const { data = [] } = useOnce(['subjects'], askSubjects);
  // All names may come when the list is open already.
  const [first] = useState(value);
  const names = namesOffered(first, data, value).filter(name => name !== except);
  return (
    <Select
      multiple
      filterable
      hasClear
      width="max"
      aria-label={label}
      placeholder={placeholder}
      value={value}
      options={names.map(name => ({ value: name, content: name }))}
      onUpdate={onUpdate}
    />
  );
}
