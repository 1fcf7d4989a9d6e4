/** A real Kubo on loopback, if `npm run kubo` has built one. It knows no peers and connects to none. */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { kuboBinary } from '../../scripts/kubo.ts'

const PROGRAM = kuboBinary()

/** False, or why tests with it are skipped. */
export const kuboMissing: string | false = existsSync(PROGRAM) ? false : 'Kubo is not built; npm run kubo does it once'

export interface Kubo {
  /** The RPC. */
  readonly url: string
  stop(): Promise<void>
}

export async function startKubo(): Promise<Kubo> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-kubo-'))
  const env = { ...process.env, IPFS_PATH: folder, IPFS_TELEMETRY: 'off' }
  const run = (...args: readonly string[]): void => void execFileSync(PROGRAM, args, { env, stdio: 'ignore' })
  run('init', '--profile=test')
  run('config', 'Addresses.API', '/ip4/127.0.0.1/tcp/0')
  run('config', '--json', 'Addresses.Swarm', '[]')
  const child = spawn(PROGRAM, ['daemon', '--offline'], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const kill = (): boolean => child.kill('SIGKILL')
  process.once('exit', kill)
  const port = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`Kubo ended with ${code}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [, found] = /^RPC API server listening on \/ip4\/127\.0\.0\.1\/tcp\/(\d+)/.exec(line) ?? []
      if (found !== undefined) resolve(found)
    })
  })
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      process.removeListener('exit', kill)
      const exited = new Promise((resolve) => child.once('exit', resolve))
      kill()
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
