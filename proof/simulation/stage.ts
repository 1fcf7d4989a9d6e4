/** What the processes of a simulation share: time, the order of events, the store and the history. */
import type { Engine } from '../../src/engine/engine.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import type { Entry, Fault } from '../history/entry.ts'
import { Recorder, timesOf } from '../history/recorder.ts'
import type { Operation } from '../workload/operation.ts'
import type { SimulatedClock } from './clock.ts'
import { Names } from './names.ts'
import type { Plan, PlannedFault } from './plan.ts'
import { watched } from './postconditions/index.ts'
import { Watch } from './postconditions/watch.ts'
import { type Role, SimulatedProcess } from './process.ts'
import { type CallFault, type Choice, Scheduler, TIME_GOES_ON } from './scheduler.ts'
import type { SimulatedStore } from './stores.ts'

/** How often time goes on although something waits, and how often another than the oldest happens. */
const TIME_SHARE = 0.06
const OTHER_SHARE = 0.45
/** A handler that ended its process: another one starts this much later. */
const CRASH_BACK_MS = 300

/** Whose timers run whatever happens: the store's and the referee's. */
export const NOBODY = { isDead: false, isPaused: false }

export class Stage {
  readonly plan: Plan
  readonly clock: SimulatedClock
  readonly store: SimulatedStore
  readonly scheduler: Scheduler
  readonly names = new Names()
  readonly history: Entry[] = []
  readonly processes: SimulatedProcess[] = []
  /** Of all entries of the history. */
  readonly times: ReturnType<typeof timesOf>
  readonly referee: Recorder
  /** From then on nothing is left to chance, and no call fails. */
  isCalm = false
  /** What was chosen, to be played again. */
  readonly choices: Choice[] = []
  readonly watch: Watch
  readonly #random: () => number
  readonly #calls = new Map<string, number>()
  readonly #open = new Set<number>()
  readonly #healing: (() => void)[] = []
  readonly #skewed: (() => void)[] = []
  #faults = 0
  #names = 0

  constructor(plan: Plan, clock: SimulatedClock, store: SimulatedStore) {
    this.plan = plan
    this.clock = clock
    this.store = store
    this.times = timesOf(clock)
    this.referee = new Recorder('referee', (entry) => this.write(entry), this.times)
    this.#random = seededRandom(plan.seed ^ 0x5eed)
    this.watch = new Watch(clock.of(NOBODY), (job, sentence) =>
      this.referee.note({ what: 'seen', rule: 'postconditions', job, isPromised: false, sentence }),
    )
    this.scheduler = new Scheduler(clock, (waiting) => this.#choose(waiting), store.quietTurns)
  }

  write(entry: Entry): void {
    this.history.push(entry)
  }

  #choose(waiting: number): Choice {
    if (this.isCalm) return 0
    const choice = this.plan.choices === null ? this.#roll(waiting) : (this.plan.choices[this.choices.length] ?? 0)
    this.choices.push(choice)
    return choice
  }

  #roll(waiting: number): Choice {
    const roll = this.#random()
    if (roll < TIME_SHARE) return TIME_GOES_ON
    return roll < TIME_SHARE + OTHER_SHARE ? Math.floor(this.#random() * waiting) : 0
  }

  faultOf(call: string): CallFault | null {
    if (this.isCalm) return null
    const nth = (this.#calls.get(call) ?? 0) + 1
    this.#calls.set(call, nth)
    const planned = this.plan.faults.find((fault) => fault.do === 'call' && fault.call === call && fault.nth === nth)
    return planned?.do === 'call' ? planned.when : null
  }

  /** The engine, with all that it answers compared with the store. */
  watched(engine: Engine): Engine {
    const { watch, scheduler, store } = this
    return watched(engine, { watch, atRest: (judge) => scheduler.atRest(judge), isShared: store.isShared === true })
  }

  /** Until it is calm, calls and answers take any time that the scheduler gives them. */
  delay(): void {
    this.#healing.push(this.note({ nemesis: 'slow', target: null }))
  }

  async launch(role: Role): Promise<SimulatedProcess> {
    this.#names += 1
    const process = new SimulatedProcess(this, role, `${role.kind}-${this.#names}`)
    this.processes.push(process)
    const engine = await this.store.open()
    void process.start(engine)
    return process
  }

  /** Those that live and have something left to do. */
  get living(): readonly SimulatedProcess[] {
    return this.processes.filter(({ isDead, isOver }) => !isDead && !isOver)
  }

  strike(fault: PlannedFault): void {
    const { living } = this
    switch (fault.do) {
      case 'kill':
        this.#kill(living[fault.process % Math.max(1, living.length)], fault.backMs)
        return
      case 'pause':
        this.#pause(living[fault.process % Math.max(1, living.length)], fault.forMs)
        return
      case 'stop': {
        const workers = living.filter(({ role, isStopping }) => role.kind === 'worker' && !isStopping)
        this.#stop(workers[fault.process % Math.max(1, workers.length)], fault.backMs)
        return
      }
      case 'clock': {
        this.clock.step(fault.byMs)
        this.store.clockSet?.()
        this.watch.setMs = this.clock.monotonicMs()
        // Due times of before are times of day, and stay: it is healed when all jobs are.
        this.#skewed.push(
          this.note({ nemesis: 'clock', target: null, detail: `${fault.byMs} ms`, allows: ['wall-clock'] }),
        )
        return
      }
      case 'call':
        return
      default:
        fault satisfies never
    }
  }

  /** Writes the fault down; the function that is returned writes down that it is healed. */
  note(fault: Omit<Fault, 'what' | 'fault'>): () => void {
    this.#faults += 1
    const number = this.#faults
    this.#open.add(number)
    this.referee.note({ what: 'fault', fault: number, ...fault })
    return () => {
      if (this.#open.delete(number)) this.referee.note({ what: 'healed', fault: number })
    }
  }

  /** Ends what holds jobs back: paused processes go on, paused types are resumed, and schedules end. */
  async heal(): Promise<void> {
    for (const heal of this.#healing.splice(0)) heal()
    for (const process of this.processes) process.isPaused = false
    // Those of the old version would take jobs of the new one again and again, and give them back.
    for (const process of this.living) if (process.version === 1) void process.stop()
    const planned = this.plan.clients.flat()
    const paused = new Set(planned.flatMap((operation) => (operation.do === 'pause' ? [operation.type] : [])))
    const scheduled = new Set(planned.flatMap((operation) => (operation.do === 'schedule' ? [operation.name] : [])))
    const operations: readonly Operation[] = [
      ...[...paused].map((type) => ({ do: 'resume', type }) as const),
      ...[...scheduled].map((name) => ({ do: 'unschedule', name }) as const),
    ]
    await this.launch({ kind: 'client', index: this.plan.clients.length, operations })
  }

  /** From here on due times can be judged by the clock again. */
  finish(): void {
    this.referee.note({ what: 'finished' })
    for (const heal of this.#skewed.splice(0)) heal()
  }

  later(ms: number, run: () => void): void {
    this.clock.of(NOBODY).after(ms, run)
  }

  #kill(process: SimulatedProcess | undefined, backMs: number): void {
    if (process === undefined || process.isDead) return
    process.kill()
    const heal = this.note({ nemesis: 'kill', target: process.name })
    this.#replace(process, backMs, heal)
  }

  /** A client is not started again: what it had left to do is not done. */
  #replace({ role }: SimulatedProcess, backMs: number, heal: () => void): void {
    this.later(role.kind === 'worker' ? backMs : 0, () => {
      heal()
      if (role.kind === 'worker') void this.launch(this.isCalm ? { kind: 'worker', index: 0 } : role)
    })
  }

  #pause(process: SimulatedProcess | undefined, forMs: number): void {
    if (process === undefined || process.isPaused) return
    process.isPaused = true
    const heal = this.note({ nemesis: 'pause', target: process.name })
    this.#healing.push(heal)
    this.later(forMs, () => {
      process.isPaused = false
      heal()
    })
  }

  #stop(process: SimulatedProcess | undefined, backMs: number): void {
    if (process === undefined) return
    const heal = this.note({ nemesis: 'stop', target: process.name })
    void process.stop()
    this.#replace(process, backMs, heal)
  }

  /** The handler of a job ends its own process. */
  crash(process: SimulatedProcess): Promise<never> {
    this.#kill(process, CRASH_BACK_MS)
    return new Promise(() => {})
  }
}
