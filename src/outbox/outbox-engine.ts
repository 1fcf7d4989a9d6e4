import type { Capabilities } from '../engine/capabilities.ts'
import type { Engine, Receipt } from '../engine/engine.ts'
import type { Outbox } from '../engine/outbox.ts'
import { ClosedError } from '../errors.ts'
import type { NewJob } from '../job/job.ts'
import type { Clock } from '../time/clock.ts'

export interface ThroughParts {
  readonly name: string
  readonly outbox: Outbox
  readonly target: Engine
  readonly clock: Clock
  /** Opens the target if it is not open. */
  reach(): Promise<void>
  close(): Promise<void>
  onAdded(): void
}

/**
 * The target, with an `enqueue` that goes through the outbox. The target may be away meanwhile: it is opened as soon as
 * something of it is needed.
 */
export function engineThrough(parts: ThroughParts): Engine {
  const { target, outbox, name, clock, reach, onAdded } = parts
  let isClosed = false
  const assertOpen = (): void => {
    if (isClosed) throw new ClosedError('this outbox')
  }
  const reached = async (): Promise<Engine> => {
    assertOpen()
    await reach()
    return target
  }
  const own: Partial<Engine> = {
    capabilities: throughCapabilities(target.capabilities),
    open: async () => assertOpen(),
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
  // Its other parts are handed on as they are: a target has facets that nobody here knows.
  return new Proxy(target, {
    get(_target, property) {
      const value: unknown = Reflect.get(Object.hasOwn(own, property) ? own : target, property)
      return typeof value === 'function' && !Object.hasOwn(own, property) ? value.bind(target) : value
    },
  })
}

/** A job that comes after others would have to wait for jobs that may never have left the outbox. */
function throughCapabilities(target: Capabilities): Capabilities {
  return Object.freeze({ ...target, enqueueAtomic: true, transactionalEnqueue: true, dependencies: false })
}

/** A delay counts from now, not from when the target hears of it. */
function dated(jobs: readonly NewJob[], nowMs: number): readonly NewJob[] {
  return jobs.map((job) => (job.delayMs === 0 ? job : { ...job, delayMs: 0, runAtMs: nowMs + job.delayMs }))
}
