import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

const gzipped = promisify(gzip)
const brotlied = promisify(brotliCompress)
const PRESSED = /\.(?:js|css|html|svg)$/

/** Writes each text file once more as .gz and as .br, so that a server never has to press one while somebody waits. */
function pressed(): Plugin {
  return {
    name: 'pressed',
    async writeBundle({ dir = '' }, bundle) {
      const files = Object.keys(bundle).filter((name) => PRESSED.test(name))
      await Promise.all(
        files.map(async (name) => {
          const file = join(dir, name)
          const bytes = await readFile(file)
          await writeFile(`${file}.gz`, await gzipped(bytes, { level: 9 }))
          await writeFile(`${file}.br`, await brotlied(bytes))
        }),
      )
    },
  }
}

export default defineConfig({
  root: import.meta.dirname,
  // Relative, so that the page works wherever a server of somebody's own mounts it.
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: join(import.meta.dirname, '../dist/dashboard'),
    emptyOutDir: true,
    target: 'es2022',
    // No inline data: URLs and no inline script: the page's policy allows its own files alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
  plugins: [pressed()],
})
