/** Tabs that live in the address. */

import { Tab, TabList, TabPanel, TabProvider } from '@gravity-ui/uikit';
import type { ReactNode } from 'react';
import { useUrlState } from '../model/urlState';

export interface TabItem {
  id: string;
  title: string;
}

/** The tab that is open: the first one is without a name in the address. */
export function useTab(items: TabItem[]): string {
  const [url] = useUrlState();
  const asked = url.get('tab');
  return items.find(item => item.id === asked)?.id ?? items[0]?.id ?? '';
}

/** The heads of the tabs, with the contents of the open one below. */
export function Tabs({ items, tab, children }: { items: TabItem[]; tab: string; children: ReactNode }) {
  const [, change] = useUrlState();
  return (
    <TabProvider
      value={tab}
      onUpdate={chosen => change({ tab: chosen === items[0]?.id ? undefined : chosen }, true)}
    >
      <TabList>
        {items.map(item => (
          <Tab key={item.id} value={item.id}>
            {item.title}
          </Tab>
        ))}
      </TabList>
      {items.map(item => (
        <TabPanel key={item.id} value={item.id}>
          {item.id === tab && <div className="tab">{children}</div>}
        </TabPanel>
      ))}
    </TabProvider>
  );
}
