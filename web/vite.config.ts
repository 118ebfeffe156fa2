import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Server that the development page asks: `MILLPOND_PROXY=127.0.0.1:9000 npm run dev`. */
const server = `http://${process.env['MILLPOND_PROXY'] ?? '127.0.0.1:8000'}`;

const proxy = Object.fromEntries(['/api', '/auth', '/version', '/service'].map(path => [path, server]));

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
