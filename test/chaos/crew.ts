import { type ChildProcess, fork } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Line } from './history.ts'

const CHILD = fileURLToPath(new URL('./worker-process.ts', import.meta.url))
/** As a supervisor would do it. */
const FAILED_START_MS = 500
const FAILED_STARTS_MAX = 100

export interface CrewOptions {
  readonly url: string
  /** Where each process writes its lines. */
  readonly folder: string
  readonly processes: number
  /** Beyond the lease: a process that wakes up after this is a zombie. */
  readonly pauseMs: number
}

/** The worker processes. One that dies is replaced while the chaos lasts. */
export class Crew {
  readonly #options: CrewOptions
  readonly #members = new Set<ChildProcess>()
  readonly #paused = new Set<ChildProcess>()
  readonly #leaving = new Set<ChildProcess>()
  /** Processes that ended though nobody killed them, a sentence each. */
  readonly crashes: string[] = []
  #isStopping = false
  #failedStarts = 0

  constructor(options: CrewOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.processes }, () => this.#hire()))
  }

  /** A process that ends before it was ready may have met a server that was away; if too many do, it is something else. */
  #hire(): Promise<void> {
    let isReady = false
    const { url, folder } = this.#options
    const child = fork(CHILD, [url, folder], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#members.add(child)
    child.once('exit', (code, signal) => {
      const isAsked = this.#isStopping || this.#leaving.delete(child)
      this.#members.delete(child)
      this.#paused.delete(child)
      if (signal !== 'SIGKILL' && isReady && !(isAsked && code === 0)) {
        this.crashes.push(`a worker process ended by itself with ${signal ?? code}`)
      }
      if (this.#isStopping) return
      if (isReady || signal !== null) void this.#hire()
      else void this.#hireLater()
    })
    return new Promise((resolve) => {
      child.once('message', () => {
        isReady = true
        resolve()
      })
      child.once('exit', () => resolve())
    })
  }

  async #hireLater(): Promise<void> {
    this.#failedStarts += 1
    if (this.#failedStarts > FAILED_STARTS_MAX) return
    await sleep(FAILED_START_MS)
    if (!this.#isStopping) await this.#hire()
  }

  /** One that is awake and stays, or nobody. */
  pick(random: () => number): ChildProcess | undefined {
    const awake = [...this.#members].filter((child) => !this.#paused.has(child) && !this.#leaving.has(child))
    return awake[Math.floor(random() * awake.length)]
  }

  /** Resolves when it goes on. */
  async pause(child: ChildProcess): Promise<void> {
    this.#paused.add(child)
    child.kill('SIGSTOP')
    await sleep(this.#options.pauseMs, undefined, { ref: false })
    if (this.#paused.delete(child)) child.kill('SIGCONT')
  }

  /** It ends in an orderly way, and another one comes. */
  leave(child: ChildProcess): void {
    this.#leaving.add(child)
    child.kill('SIGTERM')
  }

  /** Resumes processes that are still paused. */
  mend(): void {
    for (const child of this.#paused) child.kill('SIGCONT')
    this.#paused.clear()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    const gone = [...this.#members].map((child) => new Promise((resolve) => child.once('exit', resolve)))
    for (const child of this.#members) child.kill('SIGTERM')
    await Promise.all(gone)
  }

  kill(): void {
    this.#isStopping = true
    for (const child of this.#members) child.kill('SIGKILL')
  }

  /** What all of them wrote. */
  lines(): readonly Line[] {
    const { folder } = this.#options
    return readdirSync(folder).flatMap((name) =>
      readFileSync(join(folder, name), 'utf8')
        .split('\n')
        // A killed process may leave its last line unfinished.
        .filter((text) => text.endsWith('}'))
        .map((text): Line => JSON.parse(text)),
    )
  }
}
