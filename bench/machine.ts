import { createRequire } from 'node:module'
import { arch, cpus, loadavg, platform, totalmem } from 'node:os'
import { DatabaseSync } from 'node:sqlite'
import type { MachineFacts } from './result.ts'

const require = createRequire(import.meta.url)

export function machineFacts(): MachineFacts {
  const processors = cpus()
  return {
    cores: processors.length,
    processor: processors[0]?.model.trim() ?? 'unknown',
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${platform()} ${arch()}`,
    versions: {
      node: process.versions.node,
      'SQLite (node:sqlite)': sqliteVersion(),
      'better-sqlite3': packageVersion('better-sqlite3'),
      plainjob: packageVersion('plainjob'),
    },
    loadBefore: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  }
}

function sqliteVersion(): string {
  const db = new DatabaseSync(':memory:')
  const version = String(db.prepare('select sqlite_version() as version').get()?.version)
  db.close()
  return version
}

function packageVersion(name: string): string {
  const manifest: { readonly version: string } = require(`${name}/package.json`)
  return manifest.version
}
