import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { rolldown } from 'rolldown'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
export const THREAD = join(ROOT, 'src/worker/renewal-thread.ts')

export type Format = 'esm' | 'cjs'

/** What a bundle of these entries is called: `program` is program.mjs or program.cjs. */
export type Bundler = (entries: Readonly<Record<string, string>>, folder: string, format: Format) => Promise<void>

export const extensionOf = (format: Format): string => (format === 'esm' ? '.mjs' : '.cjs')

export const bundlers: Readonly<Record<string, Bundler>> = {
  async esbuild(entries, folder, format) {
    await build({
      entryPoints: { ...entries },
      bundle: true,
      platform: 'node',
      format,
      packages: 'external',
      outdir: folder,
      outExtension: { '.js': extensionOf(format) },
      logLevel: 'error',
    })
  },
  /** One build for each entry: with code splitting there would be more files than entries. */
  async rolldown(entries, folder, format) {
    for (const [name, input] of Object.entries(entries)) {
      const bundle = await rolldown({ input, platform: 'node', external: [/^(?![./])/], logLevel: 'silent' })
      await bundle.write({ file: join(folder, `${name}${extensionOf(format)}`), format, codeSplitting: false })
      await bundle.close()
    }
  },
}

/** A folder for bundles, with the packages of this one but without Millrace itself. */
export async function bundleFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bundle-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

export async function run(
  file: string,
  ...args: readonly string[]
): Promise<{ readonly out: string; readonly err: string }> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file, ...args])
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { out, err }
}
