import { leadershipOf, outboxOf } from '../engine/capability-checks.ts'
import type { Engine } from '../engine/engine.ts'
import { capabilitiesOf, type EngineSettings, openEngine } from '../engine/open.ts'
import type { OutboxSize } from '../engine/outbox.ts'
import { OptionError } from '../errors.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { type Clock, systemClock } from '../time/clock.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'
import { newWorkerId } from '../worker/worker-id.ts'
import { Forwarder } from './forwarder.ts'
import { engineThrough, type Target } from './outbox-engine.ts'

export interface OutboxOptions {
  /**
   * Where jobs wait: the `sqlite:` or `postgres:` URL of the database that your transactions are on, a handle, or an
   * engine that is in use already, such as `mill.engine`, which stays open when the outbox is closed.
   */
  readonly store: string | object
  /** Where they go: a URL, or an engine, which is then closed with the outbox. */
  readonly target: string | object
  /** Outboxes of different names in one store are independent. Default: `outbox`. */
  readonly name?: string
  /** False: this process only adds, and another one forwards. */
  readonly forward?: boolean
  /** How often the forwarder looks for jobs that other processes have committed. Default: 250ms. */
  readonly poll?: Duration
  /** Another process takes over within one and a half of this when the forwarder dies. Default: 5s. */
  readonly interval?: Duration
  /** How many jobs go at once; as many may be repeated after a crash. Default: 500. */
  readonly batch?: number
  /** Told whenever the target or the store did not answer. It is tried again in any case. */
  readonly onError?: (error: unknown) => void
  readonly clock?: Clock
  /** A number from 0 up to 1, for jitter. */
  readonly random?: () => number
  /** As for `open`: false never changes the store's schema. */
  readonly migrate?: boolean
}

const OUTBOX_NAMES: OptionNames<OutboxOptions> = {
  store: true,
  target: true,
  name: true,
  forward: true,
  poll: true,
  interval: true,
  batch: true,
  onError: true,
  clock: true,
  random: true,
  migrate: true,
}

export interface OpenedOutbox {
  /** For `open`: jobs that are enqueued there go into the outbox; all else is the target's. */
  readonly engine: Engine
  /** Whether it is this process that forwards now. */
  readonly leads: boolean
  /** How many jobs wait, and since when: what to watch. */
  size(): Promise<OutboxSize>
  /** Ends after the batch that is under way. Closing the mill does the same. */
  close(): Promise<void>
}

const BATCH_MAX = 10_000
const INTERVAL_MS_MIN = 20

/**
 * The transactional way into an engine that cannot join your transactions, such as Kafka: `enqueue` writes to a table of
 * your own database, within your transaction where one is given, and a forwarder hands the jobs on in their order.
 * It is opened while the target is away, too.
 *
 * @example
 * const outbox = await openOutbox({ store: 'sqlite:./shop.db', target: 'kafka://localhost:9092?group=shop' })
 * const mill = await open(outbox.engine)
 */
export async function openOutbox(options: OutboxOptions): Promise<OpenedOutbox> {
  refuseUnknown(options, OUTBOX_NAMES, 'openOutbox')
  const { name = 'outbox', forward = true, batch = 500, onError = () => {} } = options
  if (name === '') throw new OptionError(`'name' is empty; leave it out, or give the outbox a name`)
  if (!Number.isInteger(batch) || batch < 1 || batch > BATCH_MAX) {
    throw new OptionError(`'batch' is ${batch}; give a whole number from 1 to ${BATCH_MAX}`)
  }
  const pollMs = parseDurationMs(options.poll ?? 250, 'poll')
  const intervalMs = parseDurationMs(options.interval ?? '5s', 'interval')
  if (pollMs < 1 || intervalMs < INTERVAL_MS_MIN) {
    throw new OptionError(`'poll' must be 1 ms or more, and 'interval' ${INTERVAL_MS_MIN} ms`)
  }
  const clock = options.clock ?? systemClock
  const settings = { clock, migrate: options.migrate ?? true }
  const target = await targetOf(options.target, settings)
  const store = await openEngine(options.store, settings)
  const isOurs = store !== options.store
  const outbox = await asStore(store, isOurs)
  await target.reach().catch(onError)
  const forwarder = forward
    ? new Forwarder({
        ...{ name, outbox, clock, pollMs, intervalMs, onError, batchMax: batch, id: newWorkerId() },
        leadership: leadershipOf(store),
        random: options.random ?? Math.random,
        send: async (jobs) => {
          await (await target.reach()).enqueue(jobs)
        },
      })
    : null
  const close = once(async () => {
    await forwarder?.stop()
    await target.reached()?.close()
    if (isOurs) await store.close()
  })
  const engine = engineThrough({ name, outbox, target, clock, close, onAdded: () => forwarder?.wake() })
  return {
    engine,
    get leads() {
      return forwarder?.leads ?? false
    },
    size: () => outbox.size(name),
    close,
  }
}

async function asStore(store: Engine, isOurs: boolean) {
  try {
    return outboxOf(store)
  } catch (error) {
    if (isOurs) await store.close()
    throw error
  }
}

/** By URL it is connected when it is first needed, and again after a failure. An engine or a handle must be there. */
async function targetOf(given: string | object, settings: EngineSettings): Promise<Target> {
  if (typeof given !== 'string') {
    const engine = await openEngine(given, settings)
    return { name: engine.name, capabilities: engine.capabilities, reached: () => engine, reach: async () => engine }
  }
  const capabilities = await capabilitiesOf(given)
  let engine: Engine | null = null
  let reaching: Promise<Engine> | null = null
  const connect = async (): Promise<Engine> => {
    engine = await openEngine(given, settings)
    return engine
  }
  return {
    name: given.slice(0, given.indexOf(':')),
    capabilities,
    reached: () => engine,
    reach() {
      reaching ??= connect().catch((error: unknown) => {
        reaching = null
        throw error
      })
      return reaching
    },
  }
}

function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null
  return () => {
    running ??= run()
    return running
  }
}
