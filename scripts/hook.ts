/** Builds `millrace-hook` into one CommonJS file: `npm run hook`. Starting it costs hardly more than starting Node. */
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Plugin } from 'esbuild'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const SOURCE = path.join(ROOT, 'workloads/conversations/hook')

export const HOOK_FILE: string = path.join(ROOT, 'dist/millrace-hook.cjs')

/** What the built hook has instead of a module that takes milliseconds to load. */
const INSTEAD: readonly (readonly [RegExp, string])[] = [
  [/\/time\/clock\.ts$/, 'clock.ts'],
  [/\/time\/iso\.ts$/, 'iso.ts'],
]

const quickToLoad: Plugin = {
  name: 'quick-to-load',
  setup(build) {
    for (const [filter, name] of INSTEAD) build.onResolve({ filter }, () => ({ path: path.join(SOURCE, name) }))
  },
}

/**
 * Returns the file. Throws when the result needs anything but built-in modules. The file is a short start (start.ts) with the
 * rest (main.ts) as a text, so that the start can compile it with the help of a cache.
 */
export async function buildHook(file: string = HOOK_FILE): Promise<string> {
  const main = await bundle('main.ts')
  const text = `(function(require,HOOK_CODE){${main.replace(/^#!.*\n/, '')}})`
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const place = '"the text"'
  const start = await bundle('start.ts', { HOOK_TEXT: place, HOOK_HASH: JSON.stringify(hash) })
  mkdirSync(path.dirname(file), { recursive: true })
  // Put in here and not by esbuild, which makes a template of it: V8 takes longer to read one.
  writeFileSync(file, `#!/usr/bin/env node\n${start.replace(place, () => JSON.stringify(text))}`)
  chmodSync(file, 0o755)
  return file
}

async function bundle(entry: string, define: Readonly<Record<string, string>> = {}): Promise<string> {
  const { build } = await import('esbuild')
  const { metafile, outputFiles } = await build({
    entryPoints: [path.join(SOURCE, entry)],
    bundle: true,
    write: false,
    platform: 'node',
    format: 'cjs',
    // An older Node than the package needs must be able to read it, to say so and to spool.
    target: 'node20',
    minify: true,
    define: { ...define },
    plugins: [quickToLoad],
    legalComments: 'none',
    metafile: true,
    logLevel: 'error',
  })
  const imported = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map((one) => one.path))
  const foreign = imported.filter((name) => !isBuiltin(name))
  if (foreign.length > 0) throw new Error(`the hook may import built-in modules only, not ${foreign.join(', ')}`)
  // Outside regular expressions esbuild does it itself. A file of ASCII alone takes half the memory and is read faster.
  const escaped = (letter: string): string => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
  return (outputFiles[0]?.text ?? '').replace(/[^\0-\x7f]/g, escaped)
}

if (import.meta.main) console.log(path.relative(process.cwd(), await buildHook()))
