import { MillraceError } from '../errors.ts'

/**
 * An older Node would fail later with "No such built-in module: node:sqlite". The command line has its own check, which
 * must run before anything is imported.
 */
export function refuseOldNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > 24 || (major === 24 && minor >= 15)) return
  throw new MillraceError(
    'ERR_NODE_VERSION',
    `Millrace needs Node 24.15 or newer, and this is Node ${process.versions.node}; install a newer one from https://nodejs.org`,
  )
}
