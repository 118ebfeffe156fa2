import react from '@vitejs/plugin-react';
import { defineConfig, type ProxyOptions } from 'vite';

/** Server that the development page asks: `MILLPOND_PROXY=127.0.0.1:9000 npm run dev`. */
const server = `http://${process.env['MILLPOND_PROXY'] ?? '127.0.0.1:8000'}`;

const proxy: Record<string, string | ProxyOptions> = {
  ...Object.fromEntries(['/api', '/auth', '/version', '/service', '/logout'].map(path => [path, server])),
  // Who opens it gets the page, who sends the form the server.
  '/login': { target: server, bypass: request => (request.method === 'GET' ? '/index.html' : undefined) },
};

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: 'dist/page',
    // The strict policy of the server allows no inline script; nothing here may become one.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1000,
  },
  server: { proxy },
  preview: { proxy },
});
