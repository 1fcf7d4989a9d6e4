import type { Capabilities } from '../engine/capabilities.ts'
import type { Engine, Receipt } from '../engine/engine.ts'
import type { Outbox } from '../engine/outbox.ts'
import { ClosedError, UnsupportedError } from '../errors.ts'
import type { NewJob } from '../job/job.ts'
import type { Clock } from '../time/clock.ts'

/** Where the jobs go. It may be away when the outbox is opened. */
export interface Target {
  readonly name: string
  readonly capabilities: Capabilities
  /** Null until it was reached once. */
  reached(): Engine | null
  /** Connects unless it is connected. */
  reach(): Promise<Engine>
}

export interface ThroughParts {
  readonly name: string
  readonly outbox: Outbox
  readonly target: Target
  readonly clock: Clock
  close(): Promise<void>
  onAdded(): void
}

/**
 * The target, with an `enqueue` that goes through the outbox. Its facets are there once it has been reached.
 */
export function engineThrough(parts: ThroughParts): Engine {
  const { target, outbox, name, clock, onAdded } = parts
  let isClosed = false
  const assertOpen = (): void => {
    if (isClosed) throw new ClosedError('this outbox')
  }
  const reached = async (): Promise<Engine> => {
    assertOpen()
    return target.reach()
  }
  const own: Engine = {
    name: target.name,
    threadUrl: null,
    capabilities: throughCapabilities(target.capabilities),
    async close() {
      isClosed = true
      await parts.close()
    },
    ping: async () => (await reached()).ping(),
    consume: async (subscription) => (await reached()).consume(subscription),
    counts: async () => (await reached()).counts(),
    async enqueue(jobs, within) {
      assertOpen()
      await outbox.add(name, dated(jobs, clock.nowMs()), within)
      if (within === undefined) onAdded()
      return jobs.map(({ id }): Receipt => ({ id, status: 'enqueued' }))
    },
  }
  // Its other parts are handed on as they are: a target has facets that nothing here knows.
  return new Proxy<Engine>(own, {
    get(_own, property) {
      const engine = target.reached()
      if (OWN.has(property)) return Reflect.get(own, property)
      if (engine === null) return FACETS.has(property) ? facetOf(target, property) : Reflect.get(own, property)
      const value: unknown = Reflect.get(engine, property)
      return typeof value === 'function' ? value.bind(engine) : value
    },
  })
}

const OWN: ReadonlySet<string | symbol> = new Set(['capabilities', 'close', 'ping', 'consume', 'counts', 'enqueue'])

const FACETS: ReadonlySet<string | symbol> = new Set<keyof Engine>([
  'inspector',
  'controls',
  'deadLetters',
  'records',
  'retention',
  'logs',
])

/** A facet of a target that has not been reached: each call reaches it first. */
function facetOf(target: Target, name: string | symbol): object {
  const call =
    (method: string | symbol) =>
    async (...args: readonly unknown[]): Promise<unknown> => {
      const facet: unknown = Reflect.get(await target.reach(), name)
      const run: unknown = typeof facet === 'object' && facet !== null ? Reflect.get(facet, method) : null
      if (typeof run === 'function') return Reflect.apply(run, facet, args)
      throw new UnsupportedError({ engine: target.name, limit: `has no ${String(name)}` })
    }
  return new Proxy({}, { get: (_facet, method) => (method === 'onChange' ? undefined : call(method)) })
}

/** A job that comes after others would have to wait for jobs that may never have left the outbox. */
function throughCapabilities(target: Capabilities): Capabilities {
  return Object.freeze({ ...target, enqueueAtomic: true, transactionalEnqueue: true, dependencies: false })
}

/** A delay counts from now, not from when the target hears of it. */
function dated(jobs: readonly NewJob[], nowMs: number): readonly NewJob[] {
  return jobs.map((job) => (job.delayMs === 0 ? job : { ...job, delayMs: 0, runAtMs: nowMs + job.delayMs }))
}
