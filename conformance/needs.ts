/**
 * The excuses, one for each capability, with their twins. An excuse is derived from what the engine declares about
 * itself, so there is one source of truth; the twin shows that what is not offered is refused and not just absent.
 */
import assert from 'node:assert/strict'
import { openDesk } from '../src/desk/desk.ts'
import type { Capabilities } from '../src/engine/capabilities.ts'
import {
  admitTransaction,
  controlsOf,
  deadLettersOf,
  diagnose,
  inspectorOf,
  leadershipOf,
  lookupIn,
  lookupOf,
  retentionOf,
  schedulesOf,
} from '../src/engine/capability-checks.ts'
import type { Engine } from '../src/engine/engine.ts'
import { UnsupportedError } from '../src/errors.ts'
import { defineJob } from '../src/job/definition.ts'
import { newJobId } from '../src/job/job.ts'
import type { EnqueueOptions } from '../src/job/options.ts'
import type { Excuse } from './case.ts'
import { complete, first, idsOf, never, type Stage } from './stage.ts'

/** Joins several needs: the first that is not met excuses the case, and its twin is the one that runs. */
export function need(...needs: readonly Excuse[]): Excuse {
  const unmet = (engine: Engine): Excuse | undefined => needs.find((candidate) => candidate.excuse(engine) !== null)
  return {
    excuse: (engine) => unmet(engine)?.excuse(engine) ?? null,
    refusal: async (stage) => unmet(stage.engine)?.refusal(stage),
  }
}

export function refuses(call: () => unknown, stage: Stage): void {
  assert.throws(call, (error) => error instanceof UnsupportedError && error.engine === stage.engine.name)
}

/** The client refuses it at the door, naming the job and the engine, and nothing is stored. */
async function refusesEnqueue(stage: Stage, options: EnqueueOptions & { within?: object }): Promise<void> {
  const mill = await stage.mill()
  const definition = defineJob({ type: stage.type, backoff: { kind: 'fixed', delay: 0 } })
  await assert.rejects(
    mill.enqueue(definition, 1, options),
    (error) => error instanceof UnsupportedError && error.engine === stage.engine.name,
  )
  await stage.expectCounts({})
}

/** The same, for what a definition asks of the worker. */
export async function refusesWork(stage: Stage, spec: Omit<Parameters<typeof defineJob>[0], 'type'>): Promise<void> {
  const mill = await stage.mill()
  const definition = defineJob({ type: stage.type, ...spec, run: () => null })
  await assert.rejects(
    mill.work([definition]),
    (error) => error instanceof UnsupportedError && error.job === stage.type && error.engine === stage.engine.name,
  )
  await stage.expectCounts({})
}

/** Looking up and listing single jobs. */
export const looking: Excuse = {
  excuse: (engine) => (lookupIn(engine) !== undefined ? null : 'cannot look up single jobs'),
  refusal: async (stage) => refuses(() => lookupOf(stage.engine), stage),
}

/** The same, with their results and histories, and waiting for them. */
export const inspection: Excuse = {
  excuse: (engine) => {
    if (engine.inspector !== undefined) return null
    return looking.excuse(engine) ?? 'keeps no results and no histories of jobs'
  },
  refusal: async (stage) => {
    assert.equal(stage.engine.inspector, undefined)
    refuses(() => inspectorOf(stage.engine), stage)
  },
}

export const cancellation: Excuse = {
  excuse: ({ controls: facet }) => (facet !== undefined ? null : 'cannot cancel a job'),
  refusal: async (stage) => {
    const { id } = await stage.put()
    assert.equal(stage.engine.controls, undefined)
    refuses(() => controlsOf(stage.engine), stage)
    assert.deepEqual(idsOf(await stage.take(await stage.consume())), [id])
  },
}

export const diagnosis: Excuse = {
  excuse: ({ diagnose: facet }) => (facet !== undefined ? null : 'has nothing on disk to examine'),
  refusal: async (stage) => {
    assert.equal(stage.engine.diagnose, undefined)
    refuses(() => diagnose(stage.engine), stage)
  },
}

export const retention: Excuse = {
  excuse: ({ retention: facet }) => (facet !== undefined ? null : 'removes no finished jobs'),
  refusal: async (stage) => {
    assert.equal(stage.engine.retention, undefined)
    refuses(() => retentionOf(stage.engine), stage)
    await refusesEnqueue(stage, { removeOnComplete: true })
    await refusesEnqueue(stage, { removeOnFail: 5 })
    await refusesWork(stage, { removeOnComplete: 5, backoff: { kind: 'fixed', delay: 0 } })
  },
}

export const leadership: Excuse = {
  excuse: ({ records }) => (records !== undefined ? null : 'cannot tell which of several keepers is active'),
  refusal: async (stage) => {
    assert.equal(stage.engine.records, undefined)
    refuses(() => leadershipOf(stage.engine), stage)
  },
}

/** A definition with a schedule is refused as a schedule made at run time is. */
export const schedules: Excuse = {
  excuse: ({ records }) => (records !== undefined ? null : 'keeps no schedules'),
  refusal: async (stage) => {
    assert.equal(stage.engine.records, undefined)
    refuses(() => schedulesOf(stage.engine), stage)
    const mill = await stage.mill()
    await assert.rejects(
      mill.schedules.upsert('twin', { type: stage.type, cron: '* * * * *' }),
      (error) => error instanceof UnsupportedError && error.engine === stage.engine.name,
    )
    await refusesWork(stage, { schedule: '* * * * *', backoff: { kind: 'fixed', delay: 0 } })
  },
}

export const deadLetters: Excuse = {
  excuse: ({ deadLetters: facet }) => (facet !== undefined ? null : 'keeps no dead letters'),
  refusal: async (stage) => {
    assert.equal(stage.engine.deadLetters, undefined)
    refuses(() => deadLettersOf(stage.engine), stage)
  },
}

/** Also what the audit says of a job: it must be found and changed where it stands. */
export const erasing: Excuse = {
  excuse: ({ inspector: facet }) => (facet !== undefined ? null : 'cannot erase a single job'),
  refusal: async (stage) => {
    const by = { who: 'suite', reason: 'test' }
    const unsupported = (error: unknown) => error instanceof UnsupportedError && error.engine === stage.engine.name
    const ids = [newJobId(stage.nowMs)]
    await assert.rejects(async () => deadLettersOf(stage.engine).remove(ids, by, { erase: true }), unsupported)
    await assert.rejects(async () => openDesk(stage).erase({ ids }, by), unsupported)
  },
}

export const keys: Excuse = {
  excuse: ({ capabilities: { keys: kind } }) => {
    if (kind === 'unique-live') return null
    return kind === 'partition' ? 'uses a key to keep order, not to refuse a second job' : 'keeps no idempotency keys'
  },
  refusal: async (stage) => {
    if (stage.engine.capabilities.keys === 'refused') return refusesEnqueue(stage, { key: 'twin' })
    const jobs = stage.jobs(2, { key: 'twin' })
    await stage.engine.enqueue(jobs)
    const consumer = await stage.consume()
    for (const { id } of jobs) {
      const taken = await stage.take(consumer, 2)
      assert.deepEqual(idsOf(taken), [id], 'jobs of one key run one after another, in their order')
      await stage.settle(consumer, first(taken), complete)
    }
  },
}

export const latest: Excuse = {
  excuse: ({ capabilities: { latest: offered } }) => (offered ? null : 'does not supersede by a latest key'),
  refusal: (stage) => refusesEnqueue(stage, { latest: 'twin' }),
}

/** Also for flows, which are refused where only a part of one might be stored. */
export const dependencies: Excuse = {
  excuse: ({ capabilities: { dependencies: offered } }) => (offered ? null : 'cannot make a job wait for others'),
  refusal: async (stage) => {
    await refusesEnqueue(stage, { after: newJobId(stage.nowMs) })
    const mill = await stage.mill()
    const definition = defineJob({ type: stage.type, backoff: { kind: 'fixed', delay: 0 } })
    const flow = {
      first: { job: definition, payload: 1 },
      second: { job: definition, payload: 2, after: 'first' },
    } as const
    await assert.rejects(mill.enqueueFlow(flow), (error) => error instanceof UnsupportedError)
    await stage.expectCounts({})
  },
}

/** The longest enqueue delay that any case asks for. */
export const DELAY_MS = 2_000

export const delay: Excuse = {
  excuse: ({ capabilities: { enqueueDelayMaxMs } }) =>
    enqueueDelayMaxMs >= DELAY_MS ? null : `delays a job by ${enqueueDelayMaxMs} ms at most`,
  refusal: (stage) => refusesEnqueue(stage, { delay: DELAY_MS }),
}

/** The longest retry delay that any case asks for. On a real clock it must not be over before a case has looked. */
export const RETRY_MS = 4_000

export const retryDelay: Excuse = {
  excuse: ({ capabilities: { retryDelayMaxMs } }) =>
    retryDelayMaxMs >= RETRY_MS ? null : `delays a retry by ${retryDelayMaxMs} ms at most`,
  refusal: (stage) => refusesWork(stage, { attempts: 3, backoff: { kind: 'fixed', delay: RETRY_MS } }),
}

const isByPriority = (order: Capabilities['order']): boolean => order === 'priority' || order === 'ageing-priority'

export const priority: Excuse = {
  excuse: ({ capabilities: { order } }) =>
    isByPriority(order) ? null : `keeps the order '${order}', not that of priorities`,
  refusal: (stage) => refusesEnqueue(stage, { priority: 1 }),
}

export const ageing: Excuse = {
  excuse: ({ capabilities: { order } }) => (order === 'ageing-priority' ? null : 'cannot raise jobs that wait'),
  refusal: async (stage) => {
    const mill = await stage.mill()
    const definition = defineJob({ type: stage.type, backoff: { kind: 'fixed', delay: 0 }, run: () => null })
    await assert.rejects(
      mill.work([definition], { ageing: '10m' }),
      (error) => error instanceof UnsupportedError && error.engine === stage.engine.name,
    )
    await stage.expectCounts({})
  },
}

export const arrivalOrder: Excuse = {
  excuse: ({ capabilities: { order } }) =>
    isByPriority(order) || order === 'fifo' ? null : `keeps the order '${order}', not that of arrival`,
  refusal: async (stage) => {
    const jobs = stage.jobs(3)
    await stage.engine.enqueue(jobs)
    const taken = await stage.take(await stage.consume(), 3)
    assert.deepEqual([...idsOf(taken)].sort(), jobs.map(({ id }) => id).sort())
  },
}

export const reaping: Excuse = {
  excuse: ({ capabilities }) => (capabilities.recovery === 'reaper' ? null : 'brings expired leases back by itself'),
  refusal: async (stage) => {
    const { id } = await stage.put()
    const consumer = await stage.consume()
    await assert.rejects(
      consumer.claim({ max: 1, waitMs: 0, signal: never, from: 'expired' }),
      (error) => error instanceof UnsupportedError,
    )
    assert.deepEqual(idsOf(await stage.take(consumer)), [id])
  },
}

export const idempotentEnqueue: Excuse = {
  excuse: ({ capabilities: { idempotentEnqueue: offered } }) => (offered ? null : 'stores a repeated enqueue again'),
  refusal: async (stage) => {
    const job = stage.job()
    await stage.engine.enqueue([job])
    await stage.engine.enqueue([job])
    assert.equal((await stage.take(await stage.consume(), 5)).length, 2)
  },
}

export const atomicEnqueue: Excuse = {
  excuse: ({ capabilities: { enqueueAtomic } }) => (enqueueAtomic ? null : 'may store a part of a batch that failed'),
  // Nothing can be refused here; what was acknowledged must still be there.
  refusal: async (stage) => {
    const jobs = stage.jobs(5)
    await stage.engine.enqueue(jobs)
    assert.equal((await stage.take(await stage.consume(), 5)).length, 5)
  },
}

export const transactions: Excuse = {
  excuse: ({ capabilities: { transactionalEnqueue } }) =>
    transactionalEnqueue ? null : 'cannot join a transaction of yours',
  refusal: async (stage) => {
    refuses(() => admitTransaction(stage.engine), stage)
    await refusesEnqueue(stage, { within: {} })
  },
}

export const survival: Excuse = {
  excuse: ({ capabilities: { survives } }) =>
    survives === 'nothing' ? 'survives nothing: its jobs end with their process' : null,
  refusal: async (stage) => {
    assert.equal(stage.harness.url, undefined, 'an engine that other processes reach must survive one of them')
    assert.equal(stage.engine.threadUrl, null)
  },
}
