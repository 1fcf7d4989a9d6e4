/** The processes of a rolling upgrade. Each is a program of one installed package. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../../conformance/process/child.ts'
import type { InstalledPackage } from './packages.ts'
import type { Note, Orders } from './programs/lines.ts'

type Role = 'producer' | 'worker'

/** A slow machine with other tests on it. Conditions are met much sooner. */
const WAIT_MS = 120_000

export class Member {
  readonly name: string
  readonly role: Role
  readonly #process: ChildProcess
  #isReady = false
  #progress = 0
  #said = ''

  constructor(from: InstalledPackage, role: Role, orders: Orders) {
    this.role = role
    this.name = `${orders.name} of ${from.label}`
    this.#process = fork(join(from.folder, `${role}.ts`), [JSON.stringify(orders)], {
      cwd: from.folder,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
    })
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#said += text
    })
    this.#process.on('message', (what) => {
      if (what === 'ready') this.#isReady = true
      else this.#progress += 1
    })
  }

  /** Of a producer: acknowledged jobs. Of a worker: starts. */
  get progress(): number {
    return this.#progress
  }

  async ready(): Promise<this> {
    await eventually(() => this.#isReady || this.#hasEnded(), `the start of ${this.name}`, WAIT_MS)
    if (!this.#isReady) throw new Error(`${this.name} ended before it was ready:\n${this.#said}`)
    return this
  }

  /** Until it has done so much more. */
  async progressed(by: number): Promise<void> {
    const until = this.#progress + by
    await eventually(() => this.#progress >= until || this.#hasEnded(), `progress of ${this.name}`, WAIT_MS)
  }

  /** Asks it to stop, as a deployment does. Returns what was wrong about that. */
  async stop(): Promise<readonly string[]> {
    this.#process.kill('SIGTERM')
    await eventually(() => this.#hasEnded(), `the end of ${this.name}`, WAIT_MS)
    const { exitCode, signalCode } = this.#process
    const said = this.#said === '' ? [] : [`${this.name} said: ${this.#said.slice(0, 500)}`]
    return exitCode === 0 ? said : [`${this.name} ended with ${exitCode ?? signalCode}`, ...said]
  }

  async destroy(): Promise<void> {
    if (this.#hasEnded()) return
    this.#process.kill('SIGKILL')
    await once(this.#process, 'exit')
  }

  #hasEnded(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null
  }
}

/** What all processes wrote down. */
export function notesIn(folder: string): readonly Note[] {
  return readdirSync(folder).flatMap((name) =>
    readFileSync(join(folder, name), 'utf8')
      .split('\n')
      .filter((text) => text !== '')
      .map((text): Note => JSON.parse(text)),
  )
}
