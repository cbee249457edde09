import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// Names without hashes: the page is never cached (`no-store`), and whoever embeds it wants a small, stable set of files.
// No data: addresses, no inline script or style: the page is served under `default-src 'self'`.
export default defineConfig({
  plugins: [svelte()],
  base: './',
  server: { fs: { allow: ['..'] } },
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    rollupOptions: {
      output: {
        entryFileNames: 'app.js',
        chunkFileNames: '[name].js',
        assetFileNames: '[name][extname]',
      },
    },
  },
});
