import type { Consumer } from '../engine/engine.ts'
import type { Lease, Lost, LostReason, Outcome } from '../engine/outcome.ts'
import { LeaseLostError } from '../errors.ts'
import { clockWatch } from '../keeper/clock-watch.ts'
import { ClaimAhead } from './claim-ahead.ts'
import { ClaimLoop, type ClaimPlan } from './claim-loop.ts'
import { Deadlines } from './deadlines.ts'
import { Execution, SHUTDOWN } from './execution.ts'
import { HeldJob } from './held-job.ts'
import { CALLS, callHook } from './hooks.ts'
import { keepLeases, type LeaseKeeper } from './lease-keeper.ts'
import type { ResolvedWorkerOptions, WorkerParts } from './options.ts'
import { SettleQueue } from './settle-queue.ts'
import type { Slots } from './slots.ts'
import { WaitingJobs } from './waiting-jobs.ts'

/** With so many outcomes unanswered beyond the slots, the store is too slow to be given more work. */
const UNSETTLED_MAX = 1_024

const NOT_STARTED: Outcome = Object.freeze({ kind: 'release', delayMs: 0, reason: 'not-started' })
const PAUSED: Outcome = Object.freeze({ kind: 'release', delayMs: 0, reason: 'paused' })

/**
 * Where jobs go through a worker: claimed, waiting, running, settling. It owns every held job from the claim until the
 * engine's answer; the parts it is made of know nothing of each other.
 */
export class Workshop {
  readonly claims: ClaimLoop
  readonly settles: SettleQueue
  readonly keeper: LeaseKeeper
  readonly slots: Slots
  readonly #parts: WorkerParts
  readonly #worker: string
  readonly #waiting: WaitingJobs
  readonly #isRemote: boolean
  readonly #ahead: ClaimAhead
  readonly #execution: Execution
  readonly #deadlines: Deadlines
  readonly #stopListening: () => void
  #handles = 0
  #stopping = false
  #isStarting = false
  #onDrained: () => void = () => {}

  constructor(parts: WorkerParts, worker: string, consumer: Consumer, slots: Slots, options: ResolvedWorkerOptions) {
    const { clock, engine } = parts
    const report = (during: string) => (error: unknown) => this.#error(during, error)
    this.#parts = parts
    this.#worker = worker
    this.slots = slots
    this.#waiting = new WaitingJobs(clock, (overdue) => this.#giveBack(overdue))
    this.#isRemote = consumer.isRemote === true
    this.#ahead = new ClaimAhead(clock, slots.concurrency, this.#isRemote)
    this.#execution = new Execution({
      ...parts,
      worker,
      consumer,
      onDecided: (held) => this.#decided(held),
      onLost: (held, reason) => this.#lose(held, reason),
    })
    this.#deadlines = new Deadlines(clock, slots, (held) => this.#execution.timeOut(held))
    this.settles = new SettleQueue({
      clock,
      consumer,
      onAccepted: (held) => this.#accepted(held),
      onLost: (held, reason) => this.#emitLost(held, reason),
      onAnswered: (batch) => {
        this.keeper.drop(batch)
        // Too many unanswered outcomes hold the claims back; this is where that ends.
        this.claims.pump()
      },
      onError: report('settle'),
      afterFlush: () => this.claims.pump(),
    })
    this.claims = new ClaimLoop({
      clock,
      consumer,
      pollMs: options.pollMs,
      plan: (inHand) => this.#plan(inHand),
      isOutdated: ({ perType }) => slots.isOutdated(perType),
      onLook: clockWatch(clock, parts.events),
      onLeases: (leases) => this.#take(leases),
      onError: report('claim'),
    })
    this.keeper = keepLeases({
      clock,
      consumer,
      worker,
      threadUrl: engine.threadUrl,
      held: () => [...this.#unsettled(), ...this.settles.unanswered()],
      onLost: (handle, reason) => {
        const held = this.#unsettled().find((each) => each.handle === handle)
        if (held !== undefined) this.#lose(held, reason)
      },
      onError: (during, error) => this.#error(during, error),
    })
    const stops = [
      consumer.onLost((lost) => this.#hear(lost)),
      consumer.onTrouble?.((error) => this.#error('consuming', error)),
    ]
    this.#stopListening = () => {
      for (const stop of stops) stop?.()
    }
  }

  /** Starts nothing more and gives back what has not started. Resolves when no claim is under way. */
  async stopTaking(): Promise<void> {
    this.#stopping = true
    for (const held of this.#waiting.clear()) this.#execution.release(held, SHUTDOWN)
    await this.claims.stop()
  }

  /** Starts nothing more of these types and gives back what of them has not started; the others may be taken again. */
  pause(paused: ReadonlySet<string>): void {
    if (!this.slots.pause(paused)) return
    this.#parts.events.emit('worker.paused', { worker: this.#worker, types: this.slots.paused })
    for (const held of this.#waiting.takeOut((type) => this.slots.isPaused(type))) this.#execution.release(held, PAUSED)
    this.claims.pump()
  }

  /** Resolves when no handler runs. */
  async drained(): Promise<void> {
    if (this.slots.occupied === 0) return
    await new Promise<void>((resolve) => {
      this.#onDrained = resolve
    })
  }

  abortAll(reason: Error): void {
    for (const held of this.slots.running()) held.abort(reason)
  }

  releaseAll(): void {
    for (const held of this.slots.running()) this.#execution.release(held, SHUTDOWN)
  }

  async close(): Promise<void> {
    this.#stopListening()
    this.#deadlines.close()
    this.#waiting.clear()
    await this.keeper.close()
  }

  #plan(inHand: number): ClaimPlan | null {
    const { slots } = this
    if (this.settles.unsettled > slots.concurrency + UNSETTLED_MAX) return null
    const ahead = slots.mayClaimAhead ? this.#ahead.size : 0
    // What is in hand has no slots yet: only where any job may use any slot can more be asked for before it has.
    if (inHand > 0 && ahead === 0) return null
    const free = slots.free - this.#waiting.size - inHand
    const room = free + ahead
    // Refilling a store of waiting jobs one by one would cost a transaction each: wait until half of it is used up.
    if (free <= 0 && room < ahead / 2) return null
    const perType = slots.room()
    // Half of all there is room for, where the other half is run meanwhile.
    const most = this.#isRemote && ahead > 0 ? Math.ceil((slots.concurrency + ahead) / 2) : room
    const max = slots.startable(Math.min(room, most), perType)
    if (max <= 0) return null
    this.#ahead.claimed()
    return { max, perType }
  }

  #take(leases: readonly Lease[]): void {
    const nowMs = this.#parts.clock.monotonicMs()
    const batch: HeldJob[] = []
    for (const lease of leases) {
      const type = this.slots.types.get(lease.job.type)
      if (type === undefined) {
        this.#error('claim', new Error(`the engine handed out a job of type '${lease.job.type}', not subscribed to`))
        continue
      }
      this.#handles += 1
      const held = new HeldJob(this.#handles, lease, type, nowMs)
      batch.push(held)
    }
    this.keeper.hold(batch)
    this.#emitClaimed(batch)
    for (const held of batch) {
      if (this.#stopping) this.#execution.release(held, SHUTDOWN)
      else if (this.slots.isPaused(held.lease.job.type)) this.#execution.release(held, PAUSED)
      else if (this.slots.free > 0) this.#start(held)
      else this.#waiting.add(held)
    }
  }

  #start(held: HeldJob): void {
    held.startedAtMs = this.#parts.clock.monotonicMs()
    this.slots.occupy(held)
    this.#deadlines.watch(held)
    this.#execution.start(held)
  }

  /** A handler that ends before it returns comes back to here; the loop that is under way starts the next. */
  #startWaiting(): void {
    if (this.#isStarting) return
    this.#isStarting = true
    while (!this.#stopping && this.slots.free > 0) {
      const held = this.#waiting.next()
      if (held === undefined) break
      this.#start(held)
      this.#ahead.waited(held.startedAtMs - held.heldAtMs)
    }
    this.#isStarting = false
  }

  #decided(held: HeldJob): void {
    if (this.slots.vacate(held)) {
      this.#ahead.finished(held.durationMs, held.endedAtMs)
      this.#vacated()
    }
    this.settles.add(held)
  }

  #vacated(): void {
    this.#startWaiting()
    if (this.slots.occupied === 0) this.#onDrained()
  }

  #giveBack(overdue: readonly HeldJob[]): void {
    this.#ahead.penalize()
    for (const held of overdue) this.#execution.release(held, NOT_STARTED)
  }

  /** The lease is gone: nothing that the handler still does will be recorded, and its slot is free (I3). */
  #lose(held: HeldJob, reason: LostReason): void {
    const { phase } = held
    // A job that is settling hears of its loss in the engine's answer.
    if (phase === 'settling' || phase === 'over') return
    held.phase = 'over'
    this.keeper.drop([held])
    if (phase === 'waiting') this.#waiting.remove(held)
    else if (this.slots.vacate(held)) this.#vacated()
    held.abort(new LeaseLostError(held.lease.job.id, reason))
    this.#emitLost(held, reason)
    this.claims.pump()
  }

  #hear({ lease, reason }: Lost): void {
    const isMeant = (held: HeldJob) => held.lease.token === lease.token && held.lease.job.id === lease.job.id
    const held = this.#unsettled().find(isMeant)
    if (held !== undefined) this.#lose(held, reason)
  }

  /** What is held and of whose outcome nothing is decided: it can still be lost. */
  #unsettled(): readonly HeldJob[] {
    return [...this.slots.running(), ...this.#waiting.values()]
  }

  #accepted(held: HeldJob): void {
    const { events } = this.#parts
    const { lease, outcome, durationMs, isStarted: started } = held
    if (outcome === null) return
    if (outcome.kind !== 'release') held.type.endedAtMs = held.endedAtMs
    if (events.hears('job.settled')) {
      const { attempt } = lease
      events.emit('job.settled', { job: held.facts, attempt, worker: this.#worker, outcome, durationMs, started })
    }
    if (outcome.kind === 'complete') {
      callHook(events, held, 'onComplete', CALLS.onComplete)
    } else if (outcome.kind !== 'release') {
      callHook(events, held, 'onFailed', CALLS.onFailed)
    }
  }

  #emitClaimed(batch: readonly HeldJob[]): void {
    const { events } = this.#parts
    if (!events.hears('job.claimed')) return
    for (const { facts, lease } of batch) {
      events.emit('job.claimed', { job: facts, attempt: lease.attempt, worker: this.#worker })
    }
  }

  #emitLost({ facts, lease, isStarted: started }: HeldJob, reason: LostReason): void {
    const lost = { job: facts, attempt: lease.attempt, worker: this.#worker, reason, started }
    this.#parts.events.emit('lease.lost', lost)
  }

  #error(during: string, error: unknown): void {
    this.#parts.events.emit('worker.error', { worker: this.#worker, during, error })
  }
}
