import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface Found {
  readonly root: string
  readonly version: string
}

/** Sources and the built package lie at different depths under the same package.json. */
function find(folder: string): Found | null {
  try {
    const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    if (name === 'millrace') return { root: folder, version: String(version) }
  } catch {
    // No package.json at this depth: look further up.
  }
  const parent = dirname(folder)
  return parent === folder ? null : find(parent)
}

const found = find(import.meta.dirname)

export function packageVersion(): string {
  return found?.version ?? 'unknown'
}

/** The folder that holds the package, or null where somebody has bundled it. */
export function packageRoot(): string | null {
  return found?.root ?? null
}
