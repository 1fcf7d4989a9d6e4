import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { moduleFile } from './module-file.ts'

interface Found {
  readonly root: string
  readonly version: string
}

/** Sources and the built package are at different depths under package.json. */
function find(folder: string): Found | null {
  try {
    const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    if (name === 'millrace') return { root: folder, version: String(version) }
  } catch {
    // Not here: look further up.
  }
  const parent = dirname(folder)
  return parent === folder ? null : find(parent)
}

let found: Found | null | undefined

function here(): Found | null {
  if (found === undefined) found = find(fileURLToPath(new URL('.', moduleFile(import.meta.url))))
  return found
}

export function packageVersion(): string {
  return here()?.version ?? 'unknown'
}

/** The folder of the package; null in a bundle. */
export function packageRoot(): string | null {
  return here()?.root ?? null
}
