/**
 * Runs one Redis for the process that started this one, and ends it and removes its data when that process is gone,
 * however it went: the standard input then closes.
 *
 * The first argument is the program; the others are settings that go before those of the tests, such as
 * `appendonly=yes`.
 *
 * Lines on standard input: `stop` ends it in an orderly way and `kill` without a goodbye; `start` starts it again on the
 * same port with what it had written, `wipe` removes that first. Each is answered by a line that begins with `ready`,
 * or with `failed` and the reason.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onFreePort } from './free-port.ts'

const [program = '', ...settings] = process.argv.slice(2)
const folder = mkdtempSync(join(tmpdir(), 'millrace-redis-'))
const data = join(folder, 'data')
mkdirSync(data)

/** Nothing is written to a disk unless a test asks for it; of two arguments for one setting the last one holds. */
const SETTINGS = ['bind=127.0.0.1', 'save=', 'appendonly=no', 'maxmemory-policy=noeviction', ...settings]

async function start(at: number): Promise<ChildProcess> {
  const lines = SETTINGS.flatMap((setting) => {
    const cut = setting.indexOf('=')
    return [`--${setting.slice(0, cut)}`, setting.slice(cut + 1)]
  })
  const redis = spawn(program, ['--port', String(at), '--dir', data, ...lines], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const said: string[] = []
  await new Promise<void>((resolve, reject) => {
    redis.once('error', reject)
    redis.once('exit', (code) => reject(new Error(`redis-server ended with ${code}: ${said.join('; ')}`)))
    createInterface({ input: redis.stdout }).on('line', (line) => {
      said.push(line)
      if (said.length > 20) said.shift()
      if (line.includes('Ready to accept connections')) resolve()
    })
  })
  return redis
}

async function end(redis: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (redis.exitCode !== null || redis.signalCode !== null) return
  const ended = new Promise((resolve) => redis.once('exit', resolve))
  redis.kill(signal)
  await ended
}

process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
let [server, port] = await onFreePort(start)
process.stdout.write(`ready ${port}\n`)

async function obey(line: string): Promise<void> {
  switch (line) {
    case 'stop':
      return end(server, 'SIGTERM')
    case 'kill':
      return end(server, 'SIGKILL')
    case 'wipe':
      rmSync(data, { recursive: true, force: true })
      mkdirSync(data)
      return
    case 'start':
      server = await start(port)
      return
    default:
      throw new Error(`no such command: ${line}`)
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    await obey(line)
    process.stdout.write(`ready ${port}\n`)
  } catch (error) {
    process.stdout.write(`failed ${String(error).replaceAll('\n', ' ')}\n`)
  }
}
await end(server, 'SIGKILL')
rmSync(folder, { recursive: true, force: true })
