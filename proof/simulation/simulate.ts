/** One simulation: the same plan on the same engine always gives the same history and the same verdict. */
import { keeperCode, workerCode, workerIdCode } from '../../src/client/on-use.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { OptionError } from '../../src/errors.ts'
import { check, type Verdict } from '../check/check.ts'
import { type FinalStore, readFinalStore } from '../check/final-store.ts'
import { idsOf } from '../check/gather.ts'
import type { History } from '../history/entry.ts'
import { SimulatedClock } from './clock.ts'
import { isAllDone } from './done.ts'
import { generatePlan } from './generate.ts'
import type { Plan } from './plan.ts'
import { judgeDiagnosis } from './postconditions/diagnosis.ts'
import { judgeHistories, judgeWaiting, lookAround } from './postconditions/looks.ts'
import { probe } from './postconditions/probes.ts'
import { NOBODY, Stage } from './stage.ts'
import type { CreateStore } from './stores.ts'

export interface SimulateOptions {
  /** The engine that is tried. */
  readonly create: CreateStore
  /** A number for a plan of its own, or a plan. */
  readonly plan: number | Plan
}

export interface Simulated {
  /** With the choices that were made, so that it can be played again and be made smaller. */
  readonly plan: Plan
  readonly history: History
  readonly final: FinalStore
  readonly verdict: Verdict
  /** Steps of the scheduler. */
  readonly steps: number
}

/** Trouble ends after this many steps, whatever the clients have left to do. */
const TROUBLE_STEPS = 1_500
/**
 * Within this time everything must finish once there is no trouble. A job that ends its process may do so while that holds
 * leases as a reaper, for 30 s each time.
 */
const CALM_MS = 100_000
/** Within this time all processes must have stopped: a drain of 2 s, 5 s for the worker and 3 s for its mill. */
const STOP_MS = 10_000
const STEPS_MAX = 30_000
/** So often it is judged whether due jobs wait beside a claim, whether all ways to look agree, and what a diagnosis finds. */
const WAITING_STEPS = 5
const LOOK_STEPS = 97
const DIAGNOSIS_SEEDS = 10

/**
 * Plays real workers, keepers and clients on an engine, in one process and in an order that the plan decides, and judges
 * the history.
 *
 * @example
 * const { verdict } = await simulate({ create: memoryStore, plan: 7 })
 */
export async function simulate({ create, plan: given }: SimulateOptions): Promise<Simulated> {
  // Loading takes turns of the event loop, and only the first time.
  await Promise.all([workerCode(), keeperCode(), workerIdCode()])
  const plan = typeof given === 'number' ? generatePlan(given) : given
  if (!Number.isInteger(plan.workers) || plan.workers < 1) {
    throw new OptionError(`'workers' is ${plan.workers}; give a whole number from 1`)
  }
  const clock = new SimulatedClock()
  const store = await create(clock.of(NOBODY))
  try {
    const run = new Run(new Stage(plan, clock, store), await store.open())
    await run.trouble()
    await run.calm()
    await run.stop()
    return await run.judged()
  } finally {
    await store.destroy()
  }
}

class Run {
  readonly #stage: Stage
  /** The referee's own. */
  readonly #view: Engine
  #steps = 0

  constructor(stage: Stage, view: Engine) {
    this.#stage = stage
    this.#view = view
  }

  async #step(): Promise<boolean> {
    this.#steps += 1
    if (this.#steps >= STEPS_MAX || !(await this.#stage.scheduler.step())) return false
    if (this.#steps % WAITING_STEPS === 0) await judgeWaiting(this.#view, this.#stage.watch)
    if (this.#steps % LOOK_STEPS === 0) await lookAround(this.#view, this.#stage.watch)
    return true
  }

  async trouble(): Promise<void> {
    const { plan } = this.#stage
    this.#stage.delay()
    for (let index = 0; index < plan.workers; index += 1) await this.#stage.launch({ kind: 'worker', index })
    for (const [index, operations] of plan.clients.entries()) {
      await this.#stage.launch({ kind: 'client', index, operations })
    }
    await this.#stage.scheduler.rest()
    const faults = plan.faults.flatMap((fault) => (fault.do === 'call' ? [] : [fault])).sort((a, b) => a.at - b.at)
    while (this.#steps < TROUBLE_STEPS && (faults.length > 0 || this.#isClientBusy())) {
      while ((faults[0]?.at ?? Number.POSITIVE_INFINITY) <= this.#steps) {
        const fault = faults.shift()
        if (fault !== undefined) this.#stage.strike(fault)
        await this.#stage.scheduler.rest()
      }
      if (!(await this.#step())) break
    }
  }

  #isClientBusy(): boolean {
    return this.#stage.living.some(({ role }) => role.kind === 'client')
  }

  async calm(): Promise<void> {
    const stage = this.#stage
    stage.isCalm = true
    await stage.heal()
    stage.referee.note({ what: 'calm', boundMs: CALM_MS })
    const untilMs = stage.clock.monotonicMs() + CALM_MS
    let looked = -1
    while (stage.clock.monotonicMs() < untilMs) {
      const nowMs = stage.clock.monotonicMs()
      if (nowMs !== looked && !this.#isClientBusy() && (await isAllDone(this.#view))) {
        stage.finish()
        break
      }
      looked = nowMs
      if (!(await this.#step())) break
    }
  }

  /** As an operator does: all get SIGTERM, and have their time. */
  async stop(): Promise<void> {
    const { clock, living } = this.#stage
    const untilMs = clock.monotonicMs() + STOP_MS
    for (const process of living) void process.stop()
    await this.#stage.scheduler.rest()
    while (this.#stage.living.length > 0 && clock.monotonicMs() <= untilMs) {
      if (!(await this.#step())) break
    }
  }

  async #pass(ms: number): Promise<void> {
    const { clock } = this.#stage
    const untilMs = clock.monotonicMs() + ms
    clock.of(NOBODY).after(ms, () => {})
    await this.#stage.scheduler.rest()
    while (clock.monotonicMs() < untilMs && clock.fireNext()) await this.#stage.scheduler.rest()
  }

  async judged(): Promise<Simulated> {
    const { history, plan, choices, watch } = this.#stage
    const view = this.#view
    const final = await readFinalStore(view, idsOf(history))
    await lookAround(view, watch)
    await judgeHistories(view, watch)
    await probe(this.#stage.watched(view), watch, (ms) => this.#pass(ms))
    if (plan.seed % DIAGNOSIS_SEEDS === 0) await judgeDiagnosis(view, watch, (ms) => this.#pass(ms))
    const verdict = check({ history, final, capabilities: view.capabilities })
    return { plan: { ...plan, choices }, history, final, verdict, steps: this.#steps }
  }
}
