import type { Consumer } from '../engine/engine.ts'
import type { Lease, Lost, LostReason } from '../engine/outcome.ts'
import { LeaseLostError } from '../errors.ts'
import { clockWatch } from '../keeper/clock-watch.ts'
import { ActiveJob, callHook, HOOK_CALLS } from './active-job.ts'
import { ClaimAhead, WaitingJobs } from './claim-ahead.ts'
import { ClaimLoop, type ClaimPlan } from './claim-loop.ts'
import { Deadlines } from './deadlines.ts'
import { Execution, NOT_STARTED, PAUSED, SHUTDOWN } from './execution.ts'
import { type LeaseRenewer, startLeaseRenewer } from './lease-renewer.ts'
import type { ResolvedWorkerOptions, WorkerParts } from './options.ts'
import type { TypeOrders } from './pause-watch.ts'
import { SettleQueue } from './settle-queue.ts'
import type { Slots } from './slots.ts'

/** With this many unanswered outcomes beyond the slots, the store is too slow for more work. */
const UNSETTLED_MAX = 1_024

/**
 * The path of jobs through a worker: claimed, waiting, running, settling. It owns every active job from the claim until the
 * engine's answer and connects the parts, which do not know each other.
 */
export class WorkerRuntime {
  readonly claims: ClaimLoop
  readonly settles: SettleQueue
  readonly leaseRenewer: LeaseRenewer
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
      ...{ ...parts, worker, consumer, keepLogs: options.keepLogs },
      onDecided: (active) => this.#decided(active),
      onLost: (active, reason) => this.#lose(active, reason),
    })
    this.#deadlines = new Deadlines(clock, slots, (active) => this.#execution.timeOut(active))
    this.settles = new SettleQueue({
      clock,
      consumer,
      onAccepted: (active) => this.#accepted(active),
      onLost: (active, reason) => this.#emitLost(active, reason),
      onAnswered: (batch) => {
        this.leaseRenewer.drop(batch)
        // Too many unanswered outcomes pause claiming; now it can go on.
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
    this.leaseRenewer = startLeaseRenewer({
      clock,
      consumer,
      worker,
      threadUrl: engine.threadUrl,
      held: () => [...this.#unsettled(), ...this.settles.unanswered()],
      onLost: (handle, reason) => {
        const active = this.#unsettled().find((each) => each.handle === handle)
        if (active !== undefined) this.#lose(active, reason)
      },
      onError: (during, error) => this.#error(during, error),
    })
    this.#stopListening = consumer.listen({
      onLost: (lost) => this.#onLost(lost),
      onTrouble: (error) => this.#error('consuming', error),
    })
  }

  /** Starts no more jobs and gives back those that have not started. Resolves when no claim is under way. */
  async stopTaking(): Promise<void> {
    this.#stopping = true
    for (const active of this.#waiting.clear()) this.#execution.release(active, SHUTDOWN)
    await this.claims.stop()
  }

  /** Pauses and resumes types and takes up their limits. Jobs claimed under other orders that have not started go back. */
  heed({ paused, limits }: TypeOrders): void {
    const { slots } = this
    const { events } = this.#parts
    if (slots.pause(paused)) events.emit('worker.paused', { worker: this.#worker, types: slots.paused })
    const limited = slots.limit(limits)
    if (limited.length > 0) events.emit('worker.limited', { worker: this.#worker, types: limited })
    for (const active of this.#waiting.takeOut((type) => slots.isPaused(type) || slots.isLimited(type)))
      this.#execution.release(active, slots.isPaused(active.lease.job.type) ? PAUSED : NOT_STARTED)
    if (limited.length > 0) this.claims.restart()
    else this.claims.pump()
  }

  /** Resolves when no handler runs. */
  async drained(): Promise<void> {
    if (this.slots.occupied === 0) return
    await new Promise<void>((resolve) => {
      this.#onDrained = resolve
    })
  }

  abortAll(reason: Error): void {
    for (const active of this.slots.running()) active.abort(reason)
  }

  releaseAll(): void {
    for (const active of this.slots.running()) this.#execution.release(active, SHUTDOWN)
  }

  async close(): Promise<void> {
    this.#stopListening()
    this.#deadlines.close()
    this.#waiting.clear()
    await Promise.all([this.leaseRenewer.close(), this.#execution.close()])
  }

  #plan(inHand: number): ClaimPlan | null {
    const { slots } = this
    if (this.settles.unsettled > slots.concurrency + UNSETTLED_MAX) return null
    const ahead = slots.mayClaimAhead ? this.#ahead.size : 0
    // Leases in hand have no slots yet. More can be claimed only where any job may use any slot.
    if (inHand > 0 && ahead === 0) return null
    const free = slots.free - this.#waiting.size - inHand
    const room = free + ahead
    // Refilling the waiting jobs one by one would cost a transaction each: wait until half are used up.
    if (free <= 0 && room < ahead / 2) return null
    const perType = slots.room()
    // A remote engine fetches one half while the other half runs.
    const most = this.#isRemote && ahead > 0 ? Math.ceil((slots.concurrency + ahead) / 2) : room
    const max = slots.startable(Math.min(room, most), perType)
    if (max <= 0) return null
    this.#ahead.claimed()
    return { max, perType }
  }

  #take(leases: readonly Lease[]): void {
    const nowMs = this.#parts.clock.monotonicMs()
    if (this.slots.occupied === 0 && this.#waiting.size === 0) this.#ahead.resumed(nowMs)
    const batch: ActiveJob[] = []
    for (const lease of leases) {
      const type = this.slots.types.get(lease.job.type)
      if (type === undefined) {
        const text = `the engine handed out a job of type '${lease.job.type}', which this worker has not subscribed to`
        this.#error('claim', new Error(text))
        continue
      }
      this.#handles += 1
      batch.push(new ActiveJob(this.#handles, lease, type, nowMs))
    }
    this.leaseRenewer.hold(batch)
    this.#emitClaimed(batch)
    let timeMs = this.#parts.clock.monotonicMs()
    for (const active of batch) {
      if (this.#stopping) this.#execution.release(active, SHUTDOWN)
      else if (this.slots.isPaused(active.lease.job.type)) this.#execution.release(active, PAUSED)
      else if (!this.slots.mayHold(active.type)) this.#execution.release(active, NOT_STARTED)
      else if (this.slots.free > 0) timeMs = this.#start(active, timeMs)
      else this.#waiting.add(active)
    }
  }

  /** Answers what the time is then: reading the clock takes long for jobs that end at once, whose end was just read. */
  #start(active: ActiveJob, nowMs: number): number {
    active.startedAtMs = nowMs
    // The process stood still since it was claimed: somebody else may have it by now, and the engine knows.
    if (active.lease.expiresAtMs !== null && active.startedAtMs - active.renewedAtMs >= active.leaseMs) {
      this.#execution.release(active, NOT_STARTED)
      return nowMs
    }
    this.slots.occupy(active)
    const { attempt, job } = active.lease
    // Hooks and listeners hear that a start has failed before they hear of the next one.
    if (attempt > 1 && this.settles.afterRetry(job.id, () => this.#startLate(active))) return nowMs
    this.#deadlines.watch(active)
    this.#execution.start(active)
    return active.endedAtMs > nowMs ? active.endedAtMs : this.#parts.clock.monotonicMs()
  }

  #startLate(active: ActiveJob): void {
    if (this.#stopping) this.#execution.release(active, SHUTDOWN)
    if (active.phase !== 'waiting') return
    active.startedAtMs = this.#parts.clock.monotonicMs()
    this.#deadlines.watch(active)
    this.#execution.start(active)
  }

  /** A synchronous handler re-enters this method; the loop already under way starts the next job. */
  #startWaiting(): void {
    if (this.#isStarting || this.#waiting.size === 0) return
    this.#isStarting = true
    let nowMs = this.#parts.clock.monotonicMs()
    while (!this.#stopping && this.slots.free > 0) {
      const active = this.#waiting.next()
      if (active === undefined) break
      nowMs = this.#start(active, nowMs)
      this.#ahead.waited(active.startedAtMs - active.heldAtMs)
    }
    this.#isStarting = false
  }

  #decided(active: ActiveJob): void {
    if (this.slots.vacate(active)) {
      this.#ahead.finished(active.durationMs, active.endedAtMs)
      this.#vacated()
    }
    this.settles.add(active)
  }

  #vacated(): void {
    this.#startWaiting()
    if (this.slots.occupied === 0) this.#onDrained()
  }

  #giveBack(overdue: readonly ActiveJob[]): void {
    this.#ahead.penalize()
    for (const active of overdue) this.#execution.release(active, NOT_STARTED)
  }

  /**
   * The lease is lost: the handler's outcome will not be recorded, and its slot is free. It is told before another job
   * starts in its slot.
   */
  #lose(active: ActiveJob, reason: LostReason): void {
    const { phase } = active
    // For a settling job, the engine's answer reports the loss.
    if (phase === 'settling' || phase === 'over') return
    active.phase = 'over'
    this.leaseRenewer.drop([active])
    active.abort(new LeaseLostError(active.lease.job.id, reason))
    if (phase === 'waiting') this.#waiting.remove(active)
    if (this.slots.vacate(active)) this.#vacated()
    this.#emitLost(active, reason)
    this.claims.pump()
  }

  #onLost({ lease, reason }: Lost): void {
    const isMeant = (active: ActiveJob) => active.lease.token === lease.token && active.lease.job.id === lease.job.id
    const active = this.#unsettled().find(isMeant)
    if (active !== undefined) this.#lose(active, reason)
  }

  /** Active jobs without an outcome. They can still be lost. */
  #unsettled(): readonly ActiveJob[] {
    return [...this.slots.running(), ...this.#waiting.values()]
  }

  #accepted(active: ActiveJob): void {
    const { events } = this.#parts
    const { lease, outcome, durationMs, isStarted: started } = active
    if (outcome === null) return
    if (outcome.kind !== 'release') active.countEnd(outcome.kind)
    if (events.hasListener('job.settled')) {
      const { attempt } = lease
      events.emit('job.settled', { job: active.facts, attempt, worker: this.#worker, outcome, durationMs, started })
    }
    if (outcome.kind === 'complete') callHook(events, active, 'onComplete', HOOK_CALLS.onComplete)
    else if (outcome.kind !== 'release') callHook(events, active, 'onFailed', HOOK_CALLS.onFailed)
  }

  #emitClaimed(batch: readonly ActiveJob[]): void {
    const { events } = this.#parts
    if (!events.hasListener('job.claimed')) return
    for (const { facts: job, lease } of batch)
      events.emit('job.claimed', { job, attempt: lease.attempt, worker: this.#worker })
  }

  #emitLost({ facts, lease, isStarted: started }: ActiveJob, reason: LostReason): void {
    const lost = { job: facts, attempt: lease.attempt, worker: this.#worker, reason, started }
    this.#parts.events.emit('lease.lost', lost)
  }

  #error(during: string, error: unknown): void {
    this.#parts.events.emit('worker.error', { worker: this.#worker, during, error })
  }
}
