/** Real sentinels on loopback, which watch one primary under the name `jobs`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { findProgram } from './apt.ts'
import { onFreePort } from './free-port.ts'
import { MISSING, type OwnRedis } from './redis.ts'

export interface SentinelSettings {
  readonly sentinels?: number
  /** How many the primary has. */
  readonly replicas?: number
  /** After which the primary counts as gone, in milliseconds. */
  readonly downAfterMs?: number
}

export interface OwnSentinels {
  readonly ports: readonly number[]
  /** For an engine, with this prefix: `redis+sentinel://127.0.0.1:1,127.0.0.1:2?name=jobs&prefix=…`. */
  url(prefix: string): string
  end(): Promise<void>
}

interface Sentinel {
  readonly process: ChildProcess
  /** Resolves when it knows the replicas and the other sentinels. */
  readonly knows: Promise<void>
}

/** Resolves when each of them knows all. */
export async function startSentinels(primary: OwnRedis, settings: SentinelSettings = {}): Promise<OwnSentinels> {
  const { sentinels: count = 1, replicas = 1, downAfterMs = 500 } = settings
  const folder = mkdtempSync(join(tmpdir(), 'millrace-sentinel-'))
  const own = [
    `monitor jobs 127.0.0.1 ${primary.port} ${Math.floor(count / 2) + 1}`,
    `down-after-milliseconds jobs ${downAfterMs}`,
    'failover-timeout jobs 5000',
  ]
  const running = new Set<ChildProcess>()
  const killAll = (): void => {
    for (const one of running) one.kill('SIGKILL')
  }
  process.once('exit', killAll)
  const start = async (port: number): Promise<Sentinel> => {
    const file = join(folder, `${port}.conf`)
    writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', ...own.map((line) => `sentinel ${line}`), ''].join('\n'))
    const sentinel = await startSentinel(file, folder, { '+slave ': replicas, '+sentinel ': count - 1 })
    running.add(sentinel.process)
    return sentinel
  }
  const started = await Promise.all(Array.from({ length: count }, () => onFreePort(start)))
  await Promise.all(started.map(([{ knows }]) => knows))
  const ports = started.map(([, port]) => port)
  const hosts = ports.map((port) => `127.0.0.1:${port}`).join(',')
  return {
    ports,
    url: (prefix) => `redis+sentinel://${hosts}?name=jobs&prefix=${prefix}`,
    async end() {
      process.removeListener('exit', killAll)
      const ended = [...running].map((one) => once(one, 'exit'))
      killAll()
      await Promise.all(ended)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** `awaited`: what it has to tell, and how often, before it knows all. */
async function startSentinel(file: string, folder: string, awaited: Record<string, number>): Promise<Sentinel> {
  const program = findProgram('redis-server', 'redis-server')
  if (program === null) throw new Error(MISSING)
  const sentinel = spawn(program, [file, '--sentinel'], { stdio: ['ignore', 'pipe', 'ignore'], cwd: folder })
  const [listening, knows] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  sentinel.once('exit', () => listening.reject(new Error('a sentinel did not start')))
  const left = new Map(Object.entries(awaited))
  createInterface({ input: sentinel.stdout }).on('line', (line) => {
    if (line.includes('Sentinel ID is')) listening.resolve()
    for (const [event, times] of left) if (line.includes(event)) left.set(event, times - 1)
    if ([...left.values()].every((times) => times <= 0)) knows.resolve()
  })
  await listening.promise
  return { process: sentinel, knows: knows.promise }
}
