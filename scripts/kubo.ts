/**
 * `npm run kubo`: builds Kubo, the IPFS node, once, for the test that uploads through a real one. It needs Go, about
 * seven CPU-minutes, and the Go module proxy. The binary is kept in the user's cache, outside of this repository.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'

const VERSION = 'v0.43.0'

/** Where the binary is, or would be. */
export function kuboBinary(environment: NodeJS.ProcessEnv = process.env): string {
  const cache = environment.XDG_CACHE_HOME || path.join(homedir(), '.cache')
  return path.join(cache, 'millrace', 'kubo', VERSION, 'ipfs')
}

function build(binary: string): void {
  const folder = path.dirname(binary)
  mkdirSync(folder, { recursive: true })
  // A module of its own: `go install` refuses Kubo's, because its go.mod replaces dependencies.
  const work = mkdtempSync(path.join(folder, 'build-'))
  try {
    writeFileSync(path.join(work, 'go.mod'), 'module millrace.local/kubo\n\ngo 1.26\n')
    go(work, ['get', `github.com/ipfs/kubo/cmd/ipfs@${VERSION}`])
    go(work, ['build', '-trimpath', '-o', path.join(work, 'ipfs'), 'github.com/ipfs/kubo/cmd/ipfs'])
    // Renamed when it is whole: a build that was stopped leaves no half binary.
    renameSync(path.join(work, 'ipfs'), binary)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function go(cwd: string, args: readonly string[]): void {
  const { status, error } = spawnSync('go', args, { cwd, stdio: 'inherit' })
  if (error !== undefined) throw new Error('Go does not start; install Go 1.26 or newer', { cause: error })
  if (status !== 0) throw new Error(`go ${args[0]} ended with ${status}; its output above says why`)
}

if (import.meta.main) {
  const binary = kuboBinary()
  if (!existsSync(binary)) build(binary)
  console.log(binary)
}
