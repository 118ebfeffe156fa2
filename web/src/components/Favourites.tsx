/** The star of a page, and the list of all that have one. */

import { Star, StarFill } from '@gravity-ui/icons';
import { Button, DropdownMenu, Icon } from '@gravity-ui/uikit';
import { useLocation } from 'wouter';
import { toggled, useFavourites, type Favourite } from '../model/favourites';

export function FavouriteStar(page: Favourite) {
  const [all, change] = useFavourites();
  const on = all.some(one => one.href === page.href);
  const title = on ? 'No favourite any more' : 'Make it a favourite';
  return (
    <button
      type="button"
      className="icon-button"
      title={title}
      aria-label={title}
      aria-pressed={on}
      onClick={() => change(toggled(all, page))}
    >
      <Icon data={on ? StarFill : Star} size={14} className={on ? 'star star_on' : 'star'} />
    </button>
  );
}

/** Nothing, as long as nobody has made one. */
export function FavouritesMenu() {
  const [all] = useFavourites();
  const [, navigate] = useLocation();
  if (all.length === 0) return null;
  return (
    <DropdownMenu
      items={all.map(one => ({
        text: (
          <span className="favourite">
            <span className="clip">{one.title}</span> <span className="secondary">{one.kind}</span>
          </span>
        ),
        action: () => navigate(one.href),
      }))}
      renderSwitcher={switcher => (
        <Button {...switcher} view="flat" title="Favourites" aria-label="Favourites">
          <Icon data={StarFill} size={14} />
        </Button>
      )}
    />
  );
}
