/** What is where: one route for each page, and what all pages share. */

import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { ThemeProvider, Toaster, ToasterComponent, ToasterProvider } from '@gravity-ui/uikit';
import { lazy, Suspense } from 'react';
import { Redirect, Route, Switch } from 'wouter';
import { LiveProvider } from './api/live';
import { SessionProvider } from './api/session-context';
import { Frame } from './components/Frame';
import { Loading } from './components/Async';
import { useTheme } from './model/theme';
import { NotFound } from './pages/NotFound';
import { SignIn } from './pages/login/SignIn';
import { Scheduling } from './pages/scheduling/Scheduling';

const PoolPage = lazy(() => import('./pages/pool/PoolPage').then(m => ({ default: m.PoolPage })));
const Operations = lazy(() => import('./pages/operations/Operations').then(m => ({ default: m.Operations })));
const OperationPage = lazy(() =>
  import('./pages/operation/OperationPage').then(m => ({ default: m.OperationPage })),
);
const JobPage = lazy(() => import('./pages/operation/JobPage').then(m => ({ default: m.JobPage })));
const Nodes = lazy(() => import('./pages/nodes/Nodes').then(m => ({ default: m.Nodes })));
const NodePage = lazy(() => import('./pages/nodes/NodePage').then(m => ({ default: m.NodePage })));
const Preemptions = lazy(() =>
  import('./pages/preemptions/Preemptions').then(m => ({ default: m.Preemptions })),
);
const People = lazy(() => import('./pages/people/People').then(m => ({ default: m.People })));
const System = lazy(() => import('./pages/system/System').then(m => ({ default: m.System })));
const Submit = lazy(() => import('./pages/submit/Submit').then(m => ({ default: m.Submit })));
const Tree = lazy(() => import('./pages/tree/Tree').then(m => ({ default: m.Tree })));

const client = new QueryClient({
  defaultOptions: {
    // The pulse asks again anyway; an error should be seen at once.
    queries: { retry: false, refetchOnWindowFocus: false, gcTime: 60_000 },
  },
});
const toaster = new Toaster();

export function App() {
  const [theme, setTheme] = useTheme();
  return (
    <ThemeProvider theme={theme}>
      <ToasterProvider toaster={toaster}>
        <QueryClientProvider client={client}>
          <SessionProvider signIn={refusal => <SignIn refusal={refusal} />}>
            <LiveProvider>
              <Frame theme={theme} onTheme={setTheme}>
                <Suspense fallback={<Loading />}>
                  <Switch>
                    <Route path="/login">
                      <Redirect to="/scheduling" replace />
                    </Route>
                    <Route path="/">
                      <Redirect to="/scheduling" replace />
                    </Route>
                    <Route path="/scheduling" component={Scheduling} />
                    <Route path="/scheduling/:tree/:pool" component={PoolPage} />
                    <Route path="/operations" component={Operations} />
                    <Route path="/operations/:id" component={OperationPage} />
                    <Route path="/operations/:id/jobs/:job" component={JobPage} />
                    <Route path="/nodes" component={Nodes} />
                    <Route path="/nodes/:address" component={NodePage} />
                    <Route path="/preemptions" component={Preemptions} />
                    <Route path="/people" component={People} />
                    <Route path="/system" component={System} />
                    <Route path="/submit" component={Submit} />
                    <Route path="/tree" component={Tree} />
                    <Route component={NotFound} />
                  </Switch>
                </Suspense>
              </Frame>
            </LiveProvider>
          </SessionProvider>
          <ToasterComponent />
        </QueryClientProvider>
      </ToasterProvider>
    </ThemeProvider>
  );
}
