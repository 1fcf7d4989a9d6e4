/**
 * Builds the dashboard into dist/dashboard when it is missing or older than its sources: `npm run dashboard`, and before
 * the tour, the tests in a browser and the package. `--force` builds in any case.
 */
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const SOURCES = join(ROOT, 'dashboard')
/** Where the server looks for it. */
export const DASHBOARD = join(ROOT, 'dist', 'dashboard')

/** Whether what is built is older than what it is built from. */
export function isStale(): boolean {
  const built = statSync(join(DASHBOARD, 'index.html'), { throwIfNoEntry: false })
  if (built === undefined) return true
  return [
    ...globSync('**/*', { cwd: SOURCES }).map((file) => join(SOURCES, file)),
    join(ROOT, 'package-lock.json'),
  ].some((file) => statSync(file).mtimeMs > built.mtimeMs)
}

/** Resolves with the folder of the built page. */
export async function buildDashboard(options: { readonly force?: boolean } = {}): Promise<string> {
  if (options.force !== true && !isStale()) return DASHBOARD
  // Only now, because most calls find it built and need not wait for the builder to load.
  const { build } = await import('vite')
  console.log('Building the dashboard')
  await build({ configFile: join(SOURCES, 'vite.config.ts'), logLevel: 'warn' })
  return DASHBOARD
}

if (import.meta.main) await buildDashboard({ force: process.argv.includes('--force') })
