/** Programs that no npm package brings, from Debian's packages. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const isRoot = process.getuid?.() === 0
const FOLDERS = ['/usr/sbin', '/usr/bin', '/usr/local/bin', '/opt/homebrew/bin']

/** A fresh machine has no lists of packages yet. Another process may have installed it while this one waited. */
const INSTALL = `command -v "$0" || { apt-get update && apt-get install -y --no-install-recommends "$1"; }`

/** Where the program is. Where it is missing and may be installed, it is installed; null where it may not. */
export function findProgram(name: string, debianPackage: string): string | null {
  const found = (): string | null => FOLDERS.map((folder) => join(folder, name)).find(existsSync) ?? null
  if (found() === null && isRoot && existsSync('/usr/bin/apt-get')) install(name, debianPackage)
  return found()
}

function install(name: string, debianPackage: string): void {
  // With this run level a package does not start a service.
  const env = { ...process.env, RUNLEVEL: '1', DEBIAN_FRONTEND: 'noninteractive' }
  // Test files run at the same time, and apt-get fails where another one runs instead of waiting for it.
  const lock = join(tmpdir(), 'millrace-apt.lock')
  try {
    execFileSync('flock', [lock, '/bin/sh', '-c', INSTALL, name, debianPackage], {
      env,
      stdio: 'ignore',
      timeout: 240_000,
    })
  } catch {
    // Without a network there is none; the caller says so.
  }
}
