/** A store in memory ends with its process, so all processes of a round are parts that one process plays. */
import { type ChildProcess, fork } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { FinalStore } from '../../../proof/check/final-store.ts'
import { CAPABILITIES } from '../../../src/engines/memory/engine.ts'
import type { MemoryOrder, MemoryTold } from '../memory-process.ts'
import type { Order } from '../part.ts'
import type { OpenStore } from '../scene.ts'
import type { Child, Spare } from '../spares.ts'

const FILE = fileURLToPath(new URL('../memory-process.ts', import.meta.url))

export const openMemory: OpenStore = async ({ env = {} }) => {
  const host = new MemoryHost(env)
  return {
    engine: 'memory',
    capabilities: CAPABILITIES,
    url: 'memory:',
    directUrl: 'memory:',
    wire: null,
    nemeses: [],
    producers: [],
    host,
    destroy: () => host.end(),
  }
}

class MemoryHost {
  readonly #child: ChildProcess
  readonly #parts: PlayedPart[] = []
  readonly #exited: Promise<void>
  readonly #read = Promise.withResolvers<FinalStore>()

  constructor(env: Readonly<Record<string, string>>) {
    this.#child = fork(FILE, [], {
      env: { ...process.env, ...env },
      execArgv: ['--disable-warning=ExperimentalWarning'],
      // Keeps maps, sets and numbers that JSON does not know.
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    // Every part listens to it.
    this.#child.stderr?.setMaxListeners(0)
    this.#child.on('message', (told: MemoryTold) => this.#hear(told)).on('error', () => {})
    this.#exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        for (const part of this.#parts) part.end(code, signal)
        this.#read.reject(new Error(`the process that had the store has ended with ${signal ?? code}`))
        resolve()
      })
    })
    this.#read.promise.catch(() => {})
  }

  take(): Spare {
    const part = new PlayedPart(this.#child, this.#parts.length)
    this.#parts.push(part)
    return { child: part, clock: undefined, isLoaded: true }
  }

  readFinal(ids: readonly string[]): Promise<FinalStore> {
    this.#child.send({ read: ids } satisfies MemoryOrder, () => {})
    return this.#read.promise
  }

  async end(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  #hear(told: MemoryTold): void {
    if ('final' in told) this.#read.resolve(told.final)
    else if ('told' in told) this.#parts[told.from]?.emit('message', told.told)
    else this.#parts[told.from]?.end(told.exit, null)
  }
}

/** A part that another process plays. It can be stopped alone; paused and ended only with all others. */
class PlayedPart extends EventEmitter implements Child {
  readonly #child: ChildProcess
  readonly #number: number
  exitCode: number | null = null
  signalCode: NodeJS.Signals | null = null

  constructor(child: ChildProcess, number: number) {
    super()
    this.#child = child
    this.#number = number
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  get stderr(): ChildProcess['stderr'] {
    return this.#child.stderr
  }

  get connected(): boolean {
    return this.#child.connected
  }

  send(order: Order, done: (error: Error | null) => void): boolean {
    return this.#child.send({ to: this.#number, order } satisfies MemoryOrder, done)
  }

  kill(signal: NodeJS.Signals): boolean {
    if (signal !== 'SIGTERM') return this.#child.kill(signal)
    return this.#child.connected && this.#child.send({ to: this.#number, stop: true } satisfies MemoryOrder, () => {})
  }

  end(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.exitCode !== null || this.signalCode !== null) return
    this.exitCode = code
    this.signalCode = signal
    this.emit('exit', code, signal)
  }
}
