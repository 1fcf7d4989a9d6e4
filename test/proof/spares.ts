import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const FILE = fileURLToPath(new URL('./process.ts', import.meta.url))
const EXEC_ARGV = ['--disable-warning=ExperimentalWarning']

type Env = Readonly<Record<string, string>>

/**
 * Processes that are started ahead and wait for their part: loading the modules takes longer than most rounds can wait
 * for the successor of a process that was killed. They serve all rounds of a run.
 */
export class Spares {
  readonly #idle: ChildProcess[] = []
  readonly #count: number
  #isClosed = false

  constructor(count: number) {
    this.#count = count
    this.#refill()
  }

  /** With an environment of its own, such as a faked clock, a process is started now. */
  take(env?: Env): ChildProcess {
    if (env !== undefined) return start(env)
    const child = this.#idle.shift() ?? start()
    this.#refill()
    return child
  }

  #refill(): void {
    while (!this.#isClosed && this.#idle.length < this.#count) {
      const child = start()
      this.#idle.push(child)
      child.once('exit', () => {
        const index = this.#idle.indexOf(child)
        if (index >= 0) this.#idle.splice(index, 1)
      })
    }
  }

  close(): void {
    this.#isClosed = true
    for (const child of this.#idle) child.kill('SIGKILL')
  }
}

function start(env: Env = {}): ChildProcess {
  return fork(FILE, [], {
    env: { ...process.env, ...env },
    execArgv: EXEC_ARGV,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
}
