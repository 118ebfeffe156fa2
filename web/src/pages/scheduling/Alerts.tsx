/** What the scheduler complains about, above the table; nothing when it is content. */

import { TriangleExclamation } from '@gravity-ui/icons';
import { Button, Icon } from '@gravity-ui/uikit';
import { useState } from 'react';
import { useLive } from '../../api/live';
import { alerts as askAlerts } from '../../api/scheduling';
import { Level } from '../../components/ErrorView';
import { plural } from '../../model/format';

export function Alerts() {
  const [open, setOpen] = useState(false);
  const { data } = useLive('alerts', ['alerts'], askAlerts);
  const [first, ...others] = data ?? [];
  if (first === undefined) return null;
  return (
    <div className="alerts" role="status">
      <div className="error__head">
        <Icon data={TriangleExclamation} className="warn" />
        <Level tree={first} />
        {others.length > 0 && (
          <Button size="s" view="outlined" onClick={() => setOpen(!open)} aria-expanded={open}>
            {open ? 'Only the first' : `${plural(others.length, 'more alert')}`}
          </Button>
        )}
      </div>
      {open && others.map((alert, index) => <Level key={index} tree={alert} />)}
    </div>
  );
}
