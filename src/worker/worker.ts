import { admitAgeing, admitDefinition, logsOf } from '../engine/capability-checks.ts'
import type { Consumer, SubscribedType } from '../engine/engine.ts'
import { TallyWriter, TypeTally } from '../engine/history/tally.ts'
import { pausesIn } from '../engine/pauses.ts'
import { lagsOf, presenceIn } from '../engine/presence.ts'
import { OptionError, StoppingError } from '../errors.ts'
import type { AnyJob } from '../job/definition.ts'
import { declareSchedules } from '../keeper/declared-schedules.ts'
import { checkReapMs, startKeeper } from '../keeper/keeper.ts'
import { waitAtMost } from '../time/wait.ts'
import type { WorkedType } from './active-job.ts'
import { SIGNALS } from './early-signals.ts'
import { Heartbeat } from './heartbeat.ts'
import { type ResolvedWorkerOptions, resolveWorkerOptions, type WorkerOptions, type WorkerParts } from './options.ts'
import { type PauseWatch, watchPauses } from './pause-watch.ts'
import { Slots, workedTypes } from './slots.ts'
import { type DistinctId, distinctId, newWorkerId } from './worker-id.ts'
import { WorkerRuntime } from './worker-runtime.ts'

/** A running worker. */
export interface Worker {
  readonly id: string
  /** Jobs whose handlers run now. */
  readonly running: number
  /**
   * Takes no more jobs, waits up to `drain` for running handlers, then aborts them and gives their jobs back. It takes at
   * most `drain` plus 5 s, even when the store does not answer. It never rejects; a second call returns the same promise.
   */
  stop(cause?: string): Promise<void>
  /** Resolves when the worker has stopped. */
  readonly stopped: Promise<void>
  /** `await using worker = await mill.work(…)` stops it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void>
}

/** How long handlers have to react to their aborted signal. */
const GRACE_MS = 1_000
/** How long a start waits for the first beat, so that the worker is listed right away, and a stop for the last. */
const BEAT_MS = 1_000
/** After the drain, a stop takes at most this long. examples/deploy relies on it. */
const STOP_MS = 5_000
/** The share of that for ending a claim or a reaper's pass, both of which were asked to end when the stop began. */
const CLAIM_END_MS = 2_000
/** The share that is reserved for closing. */
const CLOSE_MS = 500
/** How long a start waits for the renewal thread. */
const THREAD_MS = 5_000
/** With leases shorter than this, nothing is claimed before the renewal thread runs. */
const LEASE_MS_LONG = 10_000

/** `stop`: a signal of the process during the start. */
export async function startWorker(
  parts: WorkerParts,
  jobs: readonly AnyJob[],
  given: WorkerOptions,
  stop: AbortSignal = new AbortController().signal,
): Promise<Worker> {
  const { engine } = parts
  const options = resolveWorkerOptions(given, jobs)
  const types = workedTypes(jobs, () => tallyFor(parts, options))
  for (const { definition } of types.values()) admitDefinition(engine, definition)
  if (options.ageingMs !== null) admitAgeing(engine)
  // The default is for engines that keep logs; what is asked for is kept or refused.
  if (given.keepLogs !== undefined && given.keepLogs !== false) logsOf(engine)
  const { recovery } = engine.capabilities
  if (given.reap !== undefined && given.reap !== false && recovery !== 'reaper') {
    throw new OptionError(`'reap' is given, but the ${engine.name} engine recovers expired leases itself; leave it out`)
  }
  checkReapMs(given.reap)
  return startUnless(stop, { parts, jobs, given, options, types })
}

/** Heartbeats bring it to the store. */
function tallyFor({ engine, clock }: WorkerParts, { presence }: ResolvedWorkerOptions): TypeTally | null {
  return presence && engine.records !== undefined ? new TypeTally(clock.nowMs() - clock.monotonicMs()) : null
}

interface Starting {
  readonly parts: WorkerParts
  readonly jobs: readonly AnyJob[]
  readonly given: WorkerOptions
  readonly options: ResolvedWorkerOptions
  readonly types: ReturnType<typeof workedTypes>
}

async function startUnless(stop: AbortSignal, starting: Starting): Promise<Worker> {
  const { parts, jobs, given, options, types } = starting
  const { engine, events } = parts
  const { id, release } = await idOf(parts, options)
  const slots = new Slots(options.concurrency, types)
  const consumer = await unlessAborted(stop, () =>
    engine.consume({
      types: [...types.values()].map(subscribed),
      worker: id,
      isPaused: (type) => slots.isPaused(type),
      signal: stop,
      ...(options.ageingMs !== null && { ageingMs: options.ageingMs }),
    }),
  ).catch((error: unknown) => {
    release()
    throw error
  })
  if (consumer === null) {
    release()
    return neverStarted(parts, id)
  }
  const runtime = new WorkerRuntime(parts, id, consumer, slots, options)
  const heartbeat = options.presence ? heartbeatOf(parts, id, slots, options) : null
  const known = { worker: id, startedAtMs: heartbeat?.startedAtMs ?? null }
  const pauses = watchPauses(parts, known, (told) => runtime.heed(told))
  const isShort = jobs.some(({ leaseMs }) => leaseMs < LEASE_MS_LONG)
  if (isShort) await waitAtMost(parts.clock, THREAD_MS, runtime.leaseRenewer.ready)
  const { concurrency, name } = options
  events.emit('worker.started', { worker: id, ...(name !== null && { name }), types: [...types.keys()], concurrency })
  const stopKeeper = await startOwnKeeper(parts, id, jobs, given)
  if (heartbeat !== null) await waitAtMost(parts.clock, BEAT_MS, heartbeat.start())
  // Last, with no await after it: the caller must have the worker when its first job runs.
  await pauses?.start()
  const started = { parts, id, consumer, runtime, options, stopKeeper, heartbeat, pauses, release }
  const worker = new StartedWorker(started)
  const end = stop.aborted ? stop : pauses?.asked
  if (end?.aborted === true) void worker.stop(String(end.reason))
  else runtime.claims.start()
  return worker
}

async function idOf(parts: WorkerParts, { id }: ResolvedWorkerOptions): Promise<DistinctId> {
  return id === null ? { id: newWorkerId(), release: () => {} } : distinctId(parts, id)
}

/** Null if `stop` aborts first. A consumer that arrives later is closed. */
async function unlessAborted(stop: AbortSignal, consume: () => Promise<Consumer>): Promise<Consumer | null> {
  if (stop.aborted) return null
  const { promise: aborted, resolve } = Promise.withResolvers<null>()
  const onAbort = (): void => resolve(null)
  stop.addEventListener('abort', onAbort, { once: true })
  const consuming = consume()
  const consumer = await Promise.race([consuming, aborted])
  stop.removeEventListener('abort', onAbort)
  if (consumer === null) void consuming.then((late) => late.close()).catch(() => {})
  return consumer
}

/** The worker that a caller gets when a signal arrives during the start. */
function neverStarted({ events }: WorkerParts, id: string): Worker {
  events.emit('worker.stopped', { worker: id })
  const stopped = Promise.resolve()
  return { id, running: 0, stopped, stop: () => stopped, [Symbol.asyncDispose]: () => stopped }
}

/** Null where the engine keeps no presence. */
function heartbeatOf(
  { engine, events, clock }: WorkerParts,
  worker: string,
  slots: Slots,
  { ageingMs, name }: ResolvedWorkerOptions,
): Heartbeat | null {
  const presence = presenceIn(engine)
  if (presence === undefined) return null
  const onError = (error: unknown): void => events.emit('worker.error', { worker, during: 'presence', error })
  const lags = async () => lagsOf((await engine.workers?.()) ?? [])
  const drains = pausesIn(engine)?.all !== undefined
  const { records } = engine
  const tallies = records === undefined ? null : new TallyWriter(records)
  return new Heartbeat({ clock, presence, tallies, worker, name, slots, ageingMs, drains, lags, records, onError })
}

/** Starts the worker's own keeper. Returns the function that stops it. */
async function startOwnKeeper(
  parts: WorkerParts,
  id: string,
  jobs: readonly AnyJob[],
  { keeper = true, reap, retention }: WorkerOptions,
): Promise<() => Promise<void>> {
  const definitions = new Map(jobs.map((definition) => [definition.type, definition]))
  const keeperParts = { ...parts, definitions, prepare: parts.prepare ?? null }
  if (!keeper) {
    await declareSchedules(keeperParts, [])
    return async () => {}
  }
  const started = await startKeeper(keeperParts, id, {
    ...(reap !== undefined && { reap }),
    ...(retention !== undefined && { retention }),
  })
  return () => started.stop()
}

/**
 * Limits apply to starts, but engines count claims, in whole milliseconds. The extra millisecond keeps a handler from
 * starting too early for its window.
 */
function subscribed(worked: WorkedType): SubscribedType {
  const { type, leaseMs, attempts } = worked.definition
  return {
    ...{ type, leaseMs, attempts },
    get slots() {
      return worked.slots ?? undefined
    },
    get limit() {
      return worked.limit === null ? undefined : { max: worked.limit.max, perMs: worked.limit.perMs + 1 }
    },
  }
}

interface Started {
  readonly parts: WorkerParts
  readonly id: string
  readonly consumer: Consumer
  readonly runtime: WorkerRuntime
  readonly options: ResolvedWorkerOptions
  readonly stopKeeper: () => Promise<void>
  readonly heartbeat: Heartbeat | null
  readonly pauses: PauseWatch | null
  /** Frees the worker's id. */
  release(): void
}

class StartedWorker implements Worker {
  readonly id: string
  readonly stopped: Promise<void>
  readonly #started: Started
  readonly #onSignal = (signal: NodeJS.Signals): void => void this.stop(signal)
  #stopping = false
  #resolveStopped: () => void = () => {}

  constructor(started: Started) {
    this.id = started.id
    this.#started = started
    this.stopped = new Promise((resolve) => {
      this.#resolveStopped = resolve
    })
    started.pauses?.asked.addEventListener('abort', () => void this.stop('drain'), { once: true })
    if (started.options.signals) for (const signal of SIGNALS) process.on(signal, this.#onSignal)
  }

  get running(): number {
    return this.#started.runtime.slots.occupied
  }

  stop(cause = 'stop'): Promise<void> {
    if (!this.#stopping) {
      this.#stopping = true
      void this.#stop(cause).then(this.#resolveStopped)
    }
    return this.stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #stop(cause: string): Promise<void> {
    const { parts, consumer, runtime, options, stopKeeper, heartbeat, pauses, release } = this.#started
    const { clock, events } = parts
    events.emit('worker.stopping', { worker: this.id, running: this.#runningIds(), cause })
    heartbeat?.stopping()
    pauses?.close()
    const quiet = Promise.all([runtime.stopTaking(), stopKeeper()])
    const drained = await waitAtMost(clock, options.drainMs, runtime.drained())
    const endMs = clock.monotonicMs() + STOP_MS
    const leftMs = (): number => Math.max(0, endMs - clock.monotonicMs())
    if (!drained) await this.#abort()
    await this.#bounded('claim', quiet, Math.min(CLAIM_END_MS, leftMs()))
    const settleMs = Math.max(0, leftMs() - CLOSE_MS)
    await this.#bounded('settle', runtime.settles.idle(settleMs), settleMs)
    await this.#bounded('close', Promise.all([runtime.close(), consumer.close()]), leftMs())
    // They report their own errors. A stop must not wait long for them.
    const told = [heartbeat?.goodbye(), pauses?.obeyed()]
    await waitAtMost(clock, Math.min(BEAT_MS, leftMs()), Promise.all(told))
    release()
    // Only now: under npm, Ctrl-C reaches the process twice, and the second must not cut the drain short.
    for (const signal of SIGNALS) process.removeListener(signal, this.#onSignal)
    events.emit('worker.stopped', { worker: this.id })
  }

  async #abort(): Promise<void> {
    const { parts, runtime, options } = this.#started
    const running = this.#runningIds()
    parts.events.emit('worker.overdue', { worker: this.id, running, drainMs: options.drainMs })
    runtime.abortAll(new StoppingError())
    await waitAtMost(parts.clock, GRACE_MS, runtime.drained())
    runtime.releaseAll()
  }

  /** Stopping continues even when the store does not answer. */
  async #bounded(during: string, step: Promise<unknown>, ms: number): Promise<void> {
    const { parts } = this.#started
    const report = (error: unknown): void => parts.events.emit('worker.error', { worker: this.id, during, error })
    step.catch(report)
    if (await waitAtMost(parts.clock, ms, step)) return
    report(new Error(`stopping waited ${ms} ms for '${during}' and went on; jobs that are still leased will be reaped`))
  }

  #runningIds(): readonly string[] {
    return this.#started.runtime.slots.running().map(({ lease }) => lease.job.id)
  }
}
