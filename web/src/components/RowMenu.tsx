/**
 * The menu of a row. A menu costs more than everything else in its row, and almost none of them is opened: until
 * then there is only its button.
 */

import { Ellipsis } from '@gravity-ui/icons';
import { Button, DropdownMenu, Icon } from '@gravity-ui/uikit';
import { useState, type ComponentProps, type ReactNode } from 'react';

interface RowMenuProps {
  label: string;
  disabled?: boolean;
  /** Makes the menu, an [`OpenedMenu`], with whatever it needs to know. */
  children: () => ReactNode;
}

export function RowMenu({ label, disabled = false, children }: RowMenuProps) {
  const [made, setMade] = useState(false);
  if (made) return <>{children()}</>;
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={label}
      aria-haspopup="menu"
      disabled={disabled}
      onClick={() => setMade(true)}
    >
      <Icon data={Ellipsis} />
    </button>
  );
}

interface OpenedMenuProps {
  label: string;
  items: ComponentProps<typeof DropdownMenu>['items'];
  disabled?: boolean;
}

/** Open from the beginning; the keyboard is where it was, on the button. */
export function OpenedMenu({ label, items, disabled = false }: OpenedMenuProps) {
  const [open, setOpen] = useState(true);
  return (
    <DropdownMenu
      open={open}
      onOpenToggle={setOpen}
      disabled={disabled}
      items={items ?? []}
      renderSwitcher={switcher => (
        <Button {...switcher} autoFocus view="flat" size="s" disabled={disabled} aria-label={label}>
          <Icon data={Ellipsis} />
        </Button>
      )}
    />
  );
}
