import { type ChildProcess, fork } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FakedClock } from './clocks.ts'
import type { Order, Told } from './part.ts'

const FILE = fileURLToPath(new URL('./process.ts', import.meta.url))
/** Loading takes a quarter of the time with it, and a run starts thousands of processes. */
const COMPILED = join(tmpdir(), 'millrace-proof-compiled')
const EXEC_ARGV = ['--disable-warning=ExperimentalWarning']

type Env = Readonly<Record<string, string>>

/** What the crew needs of a process. */
export interface Child {
  readonly pid?: number | undefined
  readonly connected: boolean
  readonly exitCode: number | null
  readonly signalCode: NodeJS.Signals | null
  readonly stderr: ChildProcess['stderr']
  send(order: Order, done: (error: Error | null) => void): boolean
  kill(signal: NodeJS.Signals): boolean
  on(event: 'message', listener: (told: Told) => void): unknown
  on(event: 'error', listener: () => void): unknown
  once(event: 'exit', listener: (code: number | null, signal: NodeJS.Signals | null) => void): unknown
}

/** A process that waits for its part, with its wall clock where that can be set. */
export interface Spare {
  readonly child: Child
  readonly clock: FakedClock | undefined
  /** False until its modules are loaded. Until then SIGTERM kills it. */
  isLoaded: boolean
}

/** One that is stopped by SIGSTOP would not notice that this process has ended. */
const living = new Set<ChildProcess>()
process.on('exit', () => {
  for (const child of living) child.kill('SIGKILL')
})

/**
 * Processes that are started ahead and wait for their part: loading the modules takes longer than most rounds can wait
 * for the successor of a process that was killed. They serve all rounds of a run.
 */
export class Spares {
  readonly #idle = new Set<Spare>()
  readonly #count: number
  readonly #nextClock: () => FakedClock | undefined
  #isClosed = false

  /** `nextClock`: of each process that is started; it may be the same one for all. */
  constructor(count: number, nextClock: () => FakedClock | undefined) {
    this.#count = count
    this.#nextClock = nextClock
    this.#refill()
  }

  /** With an environment of its own a process is started now. */
  take(env: Env): Spare {
    if (Object.keys(env).length > 0) return this.#start(env)
    const [spare = this.#start()] = this.#idle
    this.#idle.delete(spare)
    this.#refill()
    return spare
  }

  #start(env: Env = {}): Spare {
    const clock = this.#nextClock()
    const child = fork(FILE, [], {
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILED, ...clock?.env, ...env },
      execArgv: EXEC_ARGV,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    living.add(child)
    child.once('exit', () => {
      living.delete(child)
      if (child.pid !== undefined) clock?.forget(child.pid)
    })
    const spare: Spare = { child, clock, isLoaded: false }
    child.once('message', () => {
      spare.isLoaded = true
    })
    return spare
  }

  #refill(): void {
    while (!this.#isClosed && this.#idle.size < this.#count) {
      const spare = this.#start()
      this.#idle.add(spare)
      spare.child.once('exit', () => this.#idle.delete(spare))
    }
  }

  close(): void {
    this.#isClosed = true
    for (const { child } of this.#idle) child.kill('SIGKILL')
  }
}
