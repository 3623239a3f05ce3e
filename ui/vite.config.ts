import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The server answers the application below /ui/ and takes the files from the package.
export default defineConfig({
  base: "/ui/",
  plugins: [svelte()],
  build: {
    outDir: "../src/noetl/ui",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 2000,
  },
});
