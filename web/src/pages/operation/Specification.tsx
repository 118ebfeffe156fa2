/** The specification as it was given, what nobody understood of it, and what is in force. */

import { Button } from '@gravity-ui/uikit';
import { useOnce } from '../../api/live';
import { getSpecifications } from '../../api/operations';
import { Async } from '../../components/Async';
import { Mark } from '../../components/Parts';
import { Value } from '../../components/Value';
import { useUrlState } from '../../model/urlState';

type View = 'provided' | 'unrecognized' | 'resulting';

const HINTS: Record<View, string> = {
  provided: 'As it was given.',
  unrecognized: 'These options are known to nobody: they have no effect. Are they misspelt?',
  resulting: 'All options with the values in force, defaults too.',
};

export function Specification({ id }: { id: string }) {
  const [url, change] = useUrlState();
  const specifications = useOnce(['specifications', id], () => getSpecifications(id));
  const asked = url.get('spec') as View | null;
  return (
    <Async query={specifications}>
      {({ provided_spec, full_spec, unrecognized_spec }) => {
        const unknown = Object.keys(unrecognized_spec).length > 0;
        const view = asked === 'resulting' || (asked === 'unrecognized' && unknown) ? asked : 'provided';
        const value = { provided: provided_spec, unrecognized: unrecognized_spec, resulting: full_spec }[
          view
        ];
        const button = (name: View, title: string) => (
          <Button
            view={view === name ? 'normal' : 'flat'}
            aria-pressed={view === name}
            onClick={() => change({ spec: name === 'provided' ? undefined : name })}
          >
            {title}
          </Button>
        );
        return (
          <>
            <div className="toolbar">
              {button('provided', 'Provided')}
              {unknown && button('unrecognized', 'Unrecognized')}
              {button('resulting', 'Resulting specification')}
              {unknown && view !== 'unrecognized' && (
                <Mark tone="warning">some options were not understood</Mark>
              )}
            </div>
            <p className={view === 'unrecognized' ? 'warn' : 'secondary'}>{HINTS[view]}</p>
            <Value key={view} value={value} depth={4} label={`Specification, ${view}`} />
          </>
        );
      }}
    </Async>
  );
}
