import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as realSleep } from 'node:timers/promises'
import type { Mill } from '../../src/client/mill.ts'
import { open } from '../../src/client/mill.ts'
import type { Stage } from '../stage.ts'
import type { ChildEvent, ChildOrders, ChildReport } from './protocol.ts'

/** Bounds what a process may take to start, to hear or to end. Conditions are met much sooner. */
export const REAL_MS = 60_000
const POLL_MS = 10

/** Waits in real time until `holds`. */
export async function eventually(holds: () => boolean | Promise<boolean>, what: string, ms = REAL_MS): Promise<void> {
  const untilMs = performance.now() + ms
  while (!(await holds())) {
    if (performance.now() > untilMs) assert.fail(`${what} did not come true within ${ms} ms`)
    await realSleep(POLL_MS)
  }
}

/** Each is a file of this folder. */
type ChildModule = 'worker' | 'holder' | 'producer' | 'claimer'

/** A process of the suite, seen from the case that started it. */
export class Child {
  readonly said: ChildReport[] = []
  readonly #process: ChildProcess
  readonly #exited: Promise<unknown>

  constructor(module: ChildModule, orders: ChildOrders) {
    // The source runs as TypeScript, the package as JavaScript; the child has the extension of this file.
    const file = new URL(`./${module}.${import.meta.url.endsWith('.ts') ? 'ts' : 'js'}`, import.meta.url)
    this.#process = fork(file, [JSON.stringify(orders)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.#process.on('message', (said: ChildReport) => this.said.push(said))
    this.#exited = once(this.#process, 'exit')
  }

  all<Event extends ChildEvent>(event: Event): readonly Extract<ChildReport, { readonly event: Event }>[] {
    return this.said.filter((said): said is Extract<ChildReport, { readonly event: Event }> => said.event === event)
  }

  async heard<Event extends ChildEvent>(event: Event): Promise<Extract<ChildReport, { readonly event: Event }>> {
    await eventually(() => this.all(event).length > 0 || this.#hasExited(), `'${event}' from the process`)
    const [said] = this.all(event)
    assert.ok(said, `the process ended before it said '${event}'`)
    return said
  }

  go(): void {
    this.#process.send('go')
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  /** The exit code, or the signal that ended it. */
  async exited(): Promise<number | string | null> {
    await eventually(() => this.#hasExited(), 'the end of the process')
    await this.#exited
    return this.#process.exitCode ?? this.#process.signalCode
  }

  async destroy(): Promise<void> {
    if (!this.#hasExited()) this.#process.kill('SIGKILL')
    await this.exited()
  }

  #hasExited(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null
  }
}

/** A case on real processes: a mill of our own in real time, and children that never outlive the case. */
export interface ProcessStage {
  readonly mill: Mill
  readonly orders: ChildOrders
  start(module: ChildModule): Child
}

/** Cases wait for its end in real time; a machine may stand still for a second. */
const BRIEF_LEASE_MS = 2_000
/** Of holders that are not to lose anything, whatever the machine does. */
export const LASTING_LEASE_MS = 120_000

export async function onProcesses(
  stage: Stage,
  run: (staged: ProcessStage) => Promise<void>,
  { leaseMs = BRIEF_LEASE_MS, concurrency }: Partial<Pick<ChildOrders, 'leaseMs' | 'concurrency'>> = {},
): Promise<void> {
  const { url } = stage.harness
  assert.ok(url, 'the engine survives a process, so its harness must give the url that another process opens')
  const children: Child[] = []
  const orders = { url, type: stage.type, leaseMs, drainMs: 3_000, ...(concurrency && { concurrency }) }
  const mill = await open(url)
  try {
    const start: ProcessStage['start'] = (module) => {
      const child = new Child(module, orders)
      children.push(child)
      return child
    }
    await run({ mill, orders, start })
  } finally {
    for (const child of children) await child.destroy()
    await mill.close()
  }
}
