/** Runs the command line as its users do: in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

export const ROOT = resolve(import.meta.dirname, '../..')
export const MAIN = join(ROOT, 'bin/millrace.ts')
export const FIXTURES = join(import.meta.dirname, 'fixtures')
export const JOBS = join(FIXTURES, 'jobs.ts')

export interface Settings {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

/** A process whose output can be waited for. */
export class Running {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  readonly #waiting = new Set<() => void>()
  #out = ''
  #err = ''
  #closed = false

  constructor(script: string, args: readonly string[], settings: Settings = {}) {
    const { NO_COLOR: _, MILLRACE_ENGINE: __, MILLRACE_PRESENCE: ___, NODE_TEST_CONTEXT: ____, ...env } = process.env
    this.child = spawn(process.execPath, [script, ...args], {
      cwd: settings.cwd ?? ROOT,
      env: { ...env, ...settings.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#out += text
      for (const look of this.#waiting) look()
    })
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#err += text
    })
    this.ended = once(this.child, 'close').then(([code, signal]) => {
      this.#closed = true
      for (const look of this.#waiting) look()
      return { code, signal, out: this.#out, err: this.#err }
    })
  }

  /** What it has said so far. */
  get output(): string {
    return this.#out
  }

  /** Resolves once the output has what is looked for; rejects if the process ends without having said it. */
  said(what: string | RegExp): Promise<void> {
    const isThere = (): boolean => (typeof what === 'string' ? this.#out.includes(what) : what.test(this.#out))
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (isThere()) resolve()
        else if (this.#closed) reject(new Error(`it ended without saying ${what}:\n${this.#out}\n${this.#err}`))
        else return
        this.#waiting.delete(look)
      }
      this.#waiting.add(look)
      look()
    })
  }
}

export async function millrace(
  args: readonly string[],
  settings: { cwd?: string; env?: Record<string, string>; input?: string | Buffer } = {},
): Promise<Ended> {
  const running = new Running(MAIN, args, settings)
  running.child.stdin?.end(settings.input ?? '')
  return running.ended
}

/** Starts a command that runs until it is told to stop; whatever becomes of the test, it does not outlive it. */
export function startMillrace(t: TestContext, args: readonly string[], settings: { cwd?: string } = {}): Running {
  return startScript(t, MAIN, args, settings)
}

export function startScript(
  t: TestContext,
  script: string,
  args: readonly string[],
  settings: { cwd?: string } = {},
): Running {
  const running = new Running(script, args, settings)
  t.after(() => running.child.kill('SIGKILL'))
  return running
}

export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-cli-'))
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

/** Each line as the JSON object it must be. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/** Tries until the condition holds, or long enough to be sure that it never will, also where a process starts slowly. */
export async function until(holds: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
  const givesUpAt = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > givesUpAt) throw new Error(`it did not happen within ${withinMs} ms`)
    await sleep(20)
  }
}
