// How the console is built: one page, one script, one style sheet, each also packed, so that the
// binary carries the small forms and never compresses anything itself.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig } from "vite";

// Smaller files gain nothing: they fit into one packet as they are.
const PACK_FROM_BYTES = 512;

const pack = () => ({
  name: "pack",
  apply: "build",
  writeBundle({ dir }) {
    // Vite empties the folder; git keeps it, because cargo can only watch one that is there.
    writeFileSync(join(dir, ".gitignore"), "*\n!.gitignore\n");
    for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !/\.(html|js|css|svg)$/.test(entry.name)) continue;
      const file = join(entry.parentPath, entry.name);
      const bytes = readFileSync(file);
      if (bytes.length < PACK_FROM_BYTES) continue;
      writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
      writeFileSync(`${file}.br`, brotliCompressSync(bytes, {
        params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
      }));
    }
  },
});

export default defineConfig({
  base: "/console/",
  plugins: [pack()],
  build: {
    target: "es2022",
    // A style sheet or an image in the script would need an exception in the policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
