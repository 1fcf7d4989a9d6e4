/** A process of a simulation: a mill with a worker, or one that carries out the operations of a client. */
import { type Mill, open } from '../../src/client/mill.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import type { Clock } from '../../src/time/clock.ts'
import type { Entry } from '../history/entry.ts'
import { recorded } from '../history/recorded-engine.ts'
import { Recorder } from '../history/recorder.ts'
import { type Abilities, abilitiesOf } from '../workload/abilities.ts'
import { Client } from '../workload/client.ts'
import { definitionsFor, type PlanHandler, type Version } from '../workload/definitions.ts'
import { concurrencyOf, handlersFor, numberOf } from '../workload/handlers.ts'
import type { Operation } from '../workload/operation.ts'
import { perform } from '../workload/perform.ts'
import type { Owner } from './clock.ts'
import { editNewest } from './edit.ts'
import { gated } from './gate.ts'
import type { Stage } from './stage.ts'

/** Handlers that a worker runs at once. */
const CONCURRENCY = 3

export type Role =
  | { readonly kind: 'worker'; readonly index: number }
  | { readonly kind: 'client'; readonly index: number; readonly operations: readonly Operation[] }

export class SimulatedProcess implements Owner {
  readonly name: string
  readonly role: Role
  readonly recorder: Recorder
  readonly clock: Clock
  isPaused = false
  /** A client that has done all, or a process that was stopped. */
  isOver = false
  isStopping = false
  readonly #stage: Stage
  readonly #killed = new AbortController()
  readonly #stopped = new AbortController()
  #started: Promise<void> = Promise.resolve()
  #mill: Mill | null = null

  constructor(stage: Stage, role: Role, name: string) {
    this.#stage = stage
    this.role = role
    this.name = name
    this.clock = stage.clock.of(this)
    // A dead process writes nothing any more.
    const write = (entry: Entry): void => {
      if (!this.isDead) stage.write(entry)
    }
    this.recorder = new Recorder(name, write, stage.times)
  }

  /** Of a worker. The first one has the newer version, so that jobs of that version can run. */
  get version(): Version | null {
    if (this.role.kind !== 'worker') return null
    return this.role.index % 2 === 0 ? 2 : 1
  }

  get isDead(): boolean {
    return this.#killed.signal.aborted
  }

  kill(): void {
    this.#killed.abort()
  }

  /** Resolves when its worker works, or its client has done all. */
  start(engine: Engine): Promise<void> {
    this.#started = this.#start(engine).catch((error: unknown) => this.#failed(error))
    return this.#started
  }

  async #start(engine: Engine): Promise<void> {
    const { scheduler, names } = this.#stage
    // Recorded where calls reach the store, also those whose answers are lost: so the history has the true order.
    const atStore = new Recorder(this.name, (entry) => this.#stage.write(entry), this.#stage.times)
    const gate = gated(recorded(names.handing(this.#stage.watched(engine)), atStore), {
      owner: this,
      scheduler,
      faultOf: (call) => this.#stage.faultOf(call),
      killed: this.#killed.signal,
    })
    const reached = names.asking(gate)
    const mill = await open(reached, { clock: this.clock, random: seededRandom(this.#stage.plan.seed) })
    this.#mill = mill
    if (this.role.kind === 'worker') await this.#work(mill, abilitiesOf(engine), this.role.index)
    else await this.#perform(mill, abilitiesOf(engine), this.role.operations)
  }

  async #work(mill: Mill, abilities: Abilities, index: number): Promise<void> {
    const { recorder, clock } = this
    const crash = (): Promise<never> => this.#stage.crash(this)
    const parts = { mill, recorder, clock, crash, block: () => {} }
    const handlers = handlersFor(definitionsFor(abilities, this.version ?? 2), parts)
      .map(tuned)
      .map(withOddText)
    const concurrency = concurrencyOf(handlers, CONCURRENCY)
    recorder.note({ what: 'process', event: 'started', name: this.name, concurrency })
    const ageing = abilities.capabilities.order === 'ageing-priority' && index === 2
    await mill.work(handlers, {
      id: this.name,
      concurrency: CONCURRENCY,
      poll: 500,
      reap: 1_000,
      drain: 2_000,
      ...(ageing && { ageing: 200 }),
    })
  }

  async #perform(mill: Mill, abilities: Abilities, operations: readonly Operation[]): Promise<void> {
    const { recorder, clock } = this
    const client = new Client({ mill, abilities, recorder, clock, signal: this.#stopped.signal })
    for (const operation of operations) {
      if (operation.do === 'edit') await editNewest(client, operation.behaviours)
      else await perform([operation], client)
    }
    this.isOver = true
  }

  /** A start that fails ends the process, as an uncaught error does. */
  #failed(error: unknown): void {
    if (this.isDead) return
    this.recorder.note({ what: 'process', event: 'exited', name: this.name, how: String(error) })
    this.kill()
  }

  /** As SIGTERM does: it drains, closes and ends. */
  async stop(): Promise<void> {
    if (this.isStopping) return
    this.isStopping = true
    this.#stopped.abort()
    this.recorder.note({ what: 'process', event: 'stopping', name: this.name })
    // A worker that has not started yet stops as soon as it has.
    await this.#started
    if (this.isDead) return
    // It stops the worker, whose handlers may still enqueue meanwhile.
    await this.#mill?.close()
    this.recorder.note({ what: 'process', event: 'exited', name: this.name, how: '0' })
    this.isOver = true
  }
}

/** Small numbers, so that a few jobs reach the limit. */
function tuned(handler: PlanHandler): PlanHandler {
  switch (handler.type) {
    case 'limited':
      return { ...handler, limit: { max: 2, perMs: 400 } }
    case 'narrow':
      return { ...handler, concurrency: 1 }
    case 'critical':
      return handler.slots === null ? handler : { ...handler, slots: { max: 1, by: 'tenant' } }
    case 'bounded':
      return { ...handler, keepCompleted: 2, keepDead: 1 }
    default:
      return handler
  }
}

/** Results of some jobs have a character that not every store can keep. */
function withOddText(handler: PlanHandler): PlanHandler {
  const run: PlanHandler['run'] = async (context) => {
    const result = await handler.run(context)
    const isOdd = context.job.id.endsWith('5') && typeof result === 'object' && numberOf(result) !== null
    return isOdd ? { ...result, odd: '\u0000' } : result
  }
  return { ...handler, run }
}
