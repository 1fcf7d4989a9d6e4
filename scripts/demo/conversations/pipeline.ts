/** The real programs: `millrace start --preset conversations` and `millrace-hook`, each in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../../src/time/clock.ts'

const MILLRACE = fileURLToPath(new URL('../../../bin/millrace.ts', import.meta.url))

export interface Place {
  readonly engine: string
  /** Both programs run with it as their home, so that nothing is left in yours. */
  readonly home: string
  readonly hook: string
}

export interface Pipeline {
  readonly dashboard: string
  /** Everything it has logged. */
  readonly lines: readonly string[]
  /** Rejects when it ends by itself. */
  readonly failed: Promise<never>
  stop(): Promise<void>
}

export async function startPipeline(
  { engine, home }: Place,
  config: string,
  env: NodeJS.ProcessEnv,
): Promise<Pipeline> {
  const args = [MILLRACE, 'start', '--preset', 'conversations', '--engine', engine, '--config', config, '--port', '0']
  const child = spawn(process.execPath, [...args, '--json'], {
    env: { ...process.env, ...env, HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const { promise: listening, resolve } = Promise.withResolvers<string>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    const [, url] = /^\{"url":"([^"]+)"\}$/.exec(line) ?? []
    if (url !== undefined) resolve(url)
  })
  createInterface({ input: child.stderr }).on('line', (line) => void lines.push(line))
  const ended = once(child, 'exit')
  const failed = ended.then(([code]): never => {
    throw new Error(`the pipeline ended with ${code}:\n${lines.slice(-5).join('\n')}`)
  })
  // It may end when nobody listens any more.
  failed.catch(() => {})
  const stop = (): Promise<void> => end(child, ended)
  try {
    return { dashboard: await Promise.race([listening, failed]), lines, failed, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Longer than its drain would be an error of its own. */
const STOP_MS = 10_000

async function end(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const cancel = systemClock.after(STOP_MS, () => child.kill('SIGKILL'))
  await ended
  cancel()
}

/** Runs the hook as an assistant does, and returns how long the whole process took. Throws when it said anything. */
export async function runHook({ hook, engine, home }: Place, input: object): Promise<number> {
  const startedMs = systemClock.monotonicMs()
  const child = spawn(process.execPath, [hook, '--engine', engine], {
    env: { ...process.env, HOME: home },
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  child.stdin.end(JSON.stringify(input))
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  if (code !== 0 || said !== '') throw new Error(`the hook ended with ${code} and said: ${said}`)
  return systemClock.monotonicMs() - startedMs
}
