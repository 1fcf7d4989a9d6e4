import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { build } from 'vite'
import { DASHBOARD, isStale } from '../../scripts/dashboard.ts'

const CONFIG = resolve(import.meta.dirname, '../../dashboard/vite.config.ts')

export interface BuiltPage {
  readonly folder: string
  remove(): void
}

/**
 * The dashboard as its sources are now, in a folder of its own: nobody who builds it anew meanwhile takes files away from
 * under a test. What was built before is used unless it is older than they are.
 */
export async function buildPage(): Promise<BuiltPage> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-page-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    if (isStale()) await build({ configFile: CONFIG, logLevel: 'error', build: { outDir: folder } })
    else cpSync(DASHBOARD, folder, { recursive: true })
    return { folder, remove }
  } catch (error) {
    remove()
    throw error
  }
}
