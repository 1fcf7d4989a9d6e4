import assert from 'node:assert/strict'
import { setTimeout as realSleep } from 'node:timers/promises'
import { type Mill, open } from '../src/client/mill.ts'
import type { MillOptions } from '../src/client/options.ts'
import { lookupOf } from '../src/engine/capability-checks.ts'
import type { ClaimRequest, Consumer, Engine, Receipt, SubscribedType, TypeCounts } from '../src/engine/engine.ts'
import type { Lease, NotApplied, Outcome } from '../src/engine/outcome.ts'
import type { ErrorRecord, JobView, NewJob } from '../src/job/job.ts'
import { newJobId } from '../src/job/job.ts'
import type { SharedSlots } from '../src/job/slots.ts'
import { TestClock } from '../src/testing/test-clock.ts'
import { systemClock } from '../src/time/clock.ts'
import type { Harness } from './harness.ts'

/** A signal that nobody aborts. */
export const never: AbortSignal = new AbortController().signal

export const boom: ErrorRecord = { name: 'Error', code: 'E_BOOM', message: 'boom', stack: null }
export const complete: Outcome = { kind: 'complete', result: '{"done":true}', durationMs: 5 }
export const dead: Outcome = { kind: 'dead', error: boom }
export const retry = (delayMs = 0): Outcome => ({ kind: 'retry', delayMs, error: boom })
export const release = (delayMs = 0): Outcome => ({ kind: 'release', delayMs, reason: 'staged' })

/** The worker id of `Stage.reaper`. */
export const REAPER = 'suite:1:reaper'

const NOTHING: TypeCounts = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }
const STEP_MS = 10
const REAL_LOOKS = 5
const REAL_WAIT_MS = 10_000
/** The default drain time, twice: a handler that hangs must not hold up a mill for longer. */
const CLOSE_MS = 60_000

interface ConsumeOptions {
  readonly on?: Engine
  readonly types?: readonly (string | SubscribedType)[]
  readonly limit?: { readonly max: number; readonly perMs: number }
  readonly slots?: SharedSlots
  readonly worker?: string
  readonly ageingMs?: number
}

/** What a case works with: a fresh store, a type of its own, and the few moves that every case is made of. */
export class Stage {
  readonly harness: Harness
  readonly engine: Engine
  readonly leaseMs: number
  readonly #graceMs: number
  readonly type: string
  readonly #mills: Mill[] = []
  #workers = 0

  constructor(
    harness: Harness,
    settings: { readonly type: string; readonly leaseMs: number; readonly graceMs: number },
  ) {
    this.harness = harness
    this.engine = harness.engine
    this.type = settings.type
    this.leaseMs = settings.leaseMs
    this.#graceMs = settings.graceMs
  }

  get nowMs(): number {
    return this.harness.clock.nowMs()
  }

  /** A job as the core would hand it over; every field may be overridden. */
  job(fields: Partial<NewJob> = {}): NewJob {
    return {
      id: newJobId(this.nowMs),
      type: this.type,
      payload: '{"n":1}',
      payloadVersion: 1,
      priority: 5,
      attempts: 3,
      delayMs: 0,
      runAtMs: null,
      key: null,
      latest: null,
      tenant: null,
      options: null,
      after: null,
      ...fields,
    }
  }

  jobs(count: number, fields: Partial<NewJob> = {}): readonly NewJob[] {
    return Array.from({ length: count }, () => this.job(fields))
  }

  /** Stores one job and returns it with its receipt. */
  async put(fields: Partial<NewJob> = {}, on: Engine = this.engine): Promise<NewJob & { readonly receipt: Receipt }> {
    const job = this.job(fields)
    const [receipt] = await on.enqueue([job])
    assert.ok(receipt, 'enqueue returned no receipt for one job')
    return { ...job, receipt }
  }

  /** A consumer of this case's type, or of those given. */
  async consume(options: ConsumeOptions = {}): Promise<Consumer> {
    const { limit, slots } = options
    const bounds = { ...(limit && { limit }), ...(slots && { slots }) }
    const types = (options.types ?? [this.type]).map((type) =>
      typeof type === 'string' ? { type, leaseMs: this.leaseMs, ...bounds } : type,
    )
    this.#workers += 1
    const { on = this.engine, worker = `suite:1:${this.#workers}`, ageingMs } = options
    return on.consume({ types, worker, ...(ageingMs !== undefined && { ageingMs }) })
  }

  /** A reaper: it may claim only what has expired. */
  async reaper(on: Engine = this.engine): Promise<Consumer> {
    return on.consume({ types: 'every', worker: REAPER })
  }

  async other(): Promise<Engine> {
    const engine = await this.harness.other()
    return engine
  }

  /**
   * What can be claimed right now. An engine in real time that has to read first may give up on a machine that stands
   * still for a moment, so it is asked again; where there is nothing it says so at once.
   */
  async take(consumer: Consumer, max = 1, request: Partial<ClaimRequest> = {}): Promise<readonly Lease[]> {
    const asked: ClaimRequest = { max, waitMs: 0, signal: never, ...request }
    const looksMax = asked.waitMs === 0 && this.harness.clock === systemClock ? REAL_LOOKS : 1
    let leases = await consumer.claim(asked)
    for (let looks = 1; leases.length === 0 && looks < looksMax; looks += 1) leases = await consumer.claim(asked)
    return leases
  }

  async one(consumer: Consumer): Promise<Lease> {
    // On a real server the job may arrive a moment after it was enqueued; on a test clock waiting would never end.
    const waitMs = this.harness.clock === systemClock ? REAL_WAIT_MS : 0
    const leases = await this.take(consumer, 1, { waitMs })
    assert.equal(leases.length, 1, 'expected one claimable job')
    return first(leases)
  }

  async none(consumer: Consumer, why: string): Promise<void> {
    const leases = await this.take(consumer, 10)
    assert.deepEqual(
      leases.map(({ job }) => job.id),
      [],
      why,
    )
  }

  /** Settles one lease and insists that it was accepted. */
  async settle(consumer: Consumer, lease: Lease, outcome: Outcome): Promise<void> {
    assert.deepEqual(await consumer.settle([{ lease, outcome }]), [], `the holder's ${outcome.kind} was refused`)
  }

  /** Settles one lease and insists that it was refused. */
  async refused(consumer: Consumer, lease: Lease, outcome: Outcome): Promise<NotApplied> {
    const lost = await consumer.settle([{ lease, outcome }])
    assert.equal(lost.length, 1, `a ${outcome.kind} without a valid lease was accepted`)
    assert.equal(first(lost).lease.token, lease.token, 'the loss names another lease')
    return first(lost)
  }

  /** Lets a lease run out. */
  async expire(lease: Lease): Promise<void> {
    const leftMs = (lease.expiresAtMs ?? this.nowMs + this.leaseMs) - this.nowMs
    await this.harness.advance(Math.max(0, leftMs) + 1)
  }

  /** Lets `lease` run out and brings its job back to the queue in the way of this engine. */
  async recover(lease: Lease, on: Engine = this.engine): Promise<void> {
    await this.expire(lease)
    if (this.engine.capabilities.recovery === 'engine') {
      await this.harness.advance(this.engine.capabilities.recoveryMaxMs ?? 0)
      return
    }
    const reaper = await this.reaper(on)
    const expired = await this.take(reaper, 10, { from: 'expired' })
    const taken = expired.find(({ job }) => job.id === lease.job.id)
    assert.ok(taken, 'the reaper did not find the expired lease')
    await this.settle(reaper, taken, retry())
    await reaper.close()
  }

  /** Sets the wall clock by so many milliseconds; no time passes. */
  async step(ms: number): Promise<void> {
    const { harness } = this
    if (harness.step !== undefined) return harness.step(ms)
    assert.ok(harness.clock instanceof TestClock, 'give the harness a `step`, or a TestClock')
    harness.clock.step(ms)
  }

  async counts(type: string = this.type, on: Engine = this.engine): Promise<TypeCounts> {
    return (await on.counts())[type] ?? NOTHING
  }

  /** Asserts the counts of this case's type; what is left out must be zero. */
  async expectCounts(expected: Partial<TypeCounts>, type: string = this.type): Promise<void> {
    assert.deepEqual({ ...(await this.counts(type)) }, { ...NOTHING, ...expected })
  }

  async view(id: string, on: Engine = this.engine): Promise<JobView> {
    const [view] = await lookupOf(on).find([id])
    assert.ok(view, `job ${id} cannot be found`)
    return view
  }

  /** A mill on this engine and in its time; closed with the stage. */
  async mill(on: Engine = this.engine, options: MillOptions = {}): Promise<Mill> {
    const mill = await open(on, { clock: this.harness.clock, random: () => 0.5, ...options })
    this.#mills.push(mill)
    return mill
  }

  /** Waits for `promise` while the engine's time passes, at most `ms` of it. */
  async within<Value>(ms: number, promise: Promise<Value>, what: string): Promise<Value> {
    const outcome = watch(promise)
    const stepMs = Math.max(STEP_MS, ms / 200)
    for (let passedMs = 0; passedMs < ms && !outcome.done; passedMs += stepMs) await this.harness.advance(stepMs)
    for (let pass = 0; pass < this.#graceMs / STEP_MS && !outcome.done; pass += 1) await realSleep(STEP_MS)
    if (!outcome.done) assert.fail(`${what} did not happen within ${ms} ms`)
    return promise
  }

  /** Waits until `holds` is true while the engine's time passes, at most `ms` of it. */
  async until(ms: number, holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
    for (let passedMs = 0; passedMs <= ms; passedMs += STEP_MS) {
      if (await holds()) return
      await this.harness.advance(STEP_MS)
    }
    for (let pass = 0; pass < this.#graceMs / STEP_MS; pass += 1) {
      if (await holds()) return
      await realSleep(STEP_MS)
    }
    assert.fail(`${what} did not come true within ${ms} ms`)
  }

  /**
   * Waits for `promise` without moving the engine's clock: for what must happen at once. How long that really takes is
   * the machine's affair; what waits for a timer of the engine would wait much longer, or for ever.
   */
  async promptly<Value>(promise: Promise<Value>, what: string): Promise<Value> {
    const outcome = watch(promise)
    const limit = new AbortController()
    const late = realSleep(this.#graceMs, undefined, { signal: limit.signal })
    await Promise.race([promise.catch(() => {}), late.catch(() => {})])
    limit.abort()
    if (!outcome.done) assert.fail(`${what} did not happen within ${this.#graceMs} ms`)
    return promise
  }

  async close(): Promise<void> {
    for (const mill of this.#mills) await this.within(CLOSE_MS, mill.close(), 'closing the mill')
  }
}

function watch(promise: Promise<unknown>): { readonly done: boolean } {
  const state = { done: false }
  const finish = (): void => {
    state.done = true
  }
  promise.then(finish, finish)
  return state
}

export function first<Item>(items: readonly Item[]): Item {
  const [item] = items
  assert.ok(item !== undefined, 'expected at least one')
  return item
}

export const idsOf = (leases: readonly Lease[]): readonly string[] => leases.map(({ job }) => job.id)

/** A promise and its switch: for handlers that wait until the case lets them go. */
export interface Gate {
  readonly opened: Promise<void>
  open(): void
}

export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}

/** The code of what a promise rejects with; fails when it resolves. */
export async function rejection(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => assert.fail('expected a rejection, the call resolved'),
    (reason: unknown) => reason,
  )
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' ? code : String(error)
}
