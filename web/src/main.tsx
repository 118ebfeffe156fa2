/** The page's entry: see `app.tsx` for what is where. */

import '@gravity-ui/uikit/styles/styles.css';
import './styles/base.css';
import './styles/frame.css';
import './styles/table.css';
import './styles/parts.css';
import './styles/nodes.css';
import './styles/usage.css';
import './styles/login.css';

import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app';
import { forwardClientLink } from './model/links';

// The `yt` client prints links of the form /?page=operation&id=...: they lead to the operation's page.
const forwarded = forwardClientLink(window.location.pathname, window.location.search);
if (forwarded !== undefined) window.history.replaceState(null, '', forwarded);

const root = document.getElementById('root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
