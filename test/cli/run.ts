/** Runs the command line as its users do: in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { TestContext } from 'node:test'

const ROOT = resolve(import.meta.dirname, '../..')
const MAIN = join(ROOT, 'src/cli/main.ts')
export const FIXTURES = join(import.meta.dirname, 'fixtures')
export const JOBS = join(FIXTURES, 'jobs.ts')

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
  #out = ''
  #err = ''

  constructor(script: string, args: readonly string[], settings: { cwd?: string; env?: Record<string, string> } = {}) {
    const { NO_COLOR: _, MILLRACE_ENGINE: __, NODE_TEST_CONTEXT: ___, ...env } = process.env
    this.child = spawn(process.execPath, ['--conditions=millrace-source', script, ...args], {
      cwd: settings.cwd ?? ROOT,
      env: { ...env, ...settings.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#out += text
    })
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#err += text
    })
    this.ended = once(this.child, 'close').then(([code, signal]) => ({ code, signal, out: this.#out, err: this.#err }))
  }

  /** Resolves once the output has what is looked for; rejects if the process ends without having said it. */
  async said(what: string | RegExp): Promise<void> {
    const matches = (): boolean => (typeof what === 'string' ? this.#out.includes(what) : what.test(this.#out))
    while (!matches()) {
      const stdout = this.child.stdout
      if (stdout === null || this.child.exitCode !== null || stdout.closed) {
        throw new Error(`the process ended without saying ${what}:\n${this.#out}\n${this.#err}`)
      }
      await Promise.race([once(stdout, 'data'), once(this.child, 'close')])
    }
  }
}

export async function millrace(
  args: readonly string[],
  settings: { cwd?: string; env?: Record<string, string>; input?: string } = {},
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
