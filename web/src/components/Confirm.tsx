/** Asks before something is lost, and shows why it was refused. */

import { Dialog } from '@gravity-ui/uikit';
import { useState, type ReactNode } from 'react';
import { useLiveControl } from '../api/live';
import { ErrorView } from './ErrorView';

interface Props {
  title: string;
  /** What the button does, as a verb. */
  verb: string;
  danger?: boolean;
  disabled?: boolean;
  children: ReactNode;
  act: () => Promise<unknown>;
  onClose: () => void;
  onDone?: () => void;
  size?: 's' | 'm' | 'l';
}

export function Confirm({
  title,
  verb,
  danger = false,
  disabled = false,
  children,
  act,
  onClose,
  onDone,
  size = 's',
}: Props) {
  const { refresh } = useLiveControl();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const apply = async () => {
    setBusy(true);
    setError(null);
    try {
      await act();
      refresh();
      onDone?.();
      onClose();
    } catch (refusal) {
      setError(refusal);
      setBusy(false);
    }
  };
  return (
    <Dialog open onClose={onClose} size={size} aria-label={title} onEnterKeyDown={undefined}>
      <Dialog.Header caption={title} />
      <Dialog.Body>
        {children}
        {error !== null && (
          <div className="dialog-error">
            <ErrorView error={error} />
          </div>
        )}
      </Dialog.Body>
      <Dialog.Footer
        textButtonApply={verb}
        textButtonCancel="Cancel"
        onClickButtonApply={() => void apply()}
        onClickButtonCancel={onClose}
        loading={busy}
        propsButtonApply={{ view: danger ? 'outlined-danger' : 'action', disabled }}
      />
    </Dialog>
  );
}
