import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { defineJob, type Mill, NonRetryable, open } from '../../../src/index.ts'
import { drain } from '../../../src/testing/drain.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import {
  CRITICAL_JOB_TYPES,
  type DeadLetterEntry,
  DeadLetterManager,
  type DeadLetterStorage,
  isCriticalJobType,
  type WorkerAlert,
  workerAlert,
} from '../index.ts'
import { JOB_TYPES } from '../job-types.ts'
import { jobIdOf, uuidOf } from './entry.ts'

let healed = false
const flaky = defineJob({
  type: 'slack-sync',
  attempts: 2,
  backoff: { kind: 'fixed', delay: 0 },
  run: ({ payload }) => {
    if (healed) return `synced ${JSON.stringify(payload)}`
    throw Object.assign(new Error('slack is away'), { code: 'EAWAY' })
  },
})
const doomed = defineJob({
  type: 'quota-check',
  run: () => {
    throw new NonRetryable('no such org')
  },
})
const backoff = { kind: 'list', delays: [0, 0] } as const
const tenant = { orgId: 'acme', workspaceId: 'w1' }

/** A mill on each engine with one job of `flaky` that has died. */
async function withDead(t: TestContext, url: string): Promise<{ readonly mill: Mill; readonly jobId: string }> {
  healed = false
  const mill = await open(url, { clock: new TestClock(Date.UTC(2026, 0, 31)) })
  t.after(() => mill.close())
  const { id } = await mill.enqueue(flaky, { channel: 7 }, { tenant, priority: 2, timeout: '9s', backoff })
  assert.equal((await drain(mill, [flaky])).dead, 1)
  return { mill, jobId: id }
}

/** The port, as someone else would implement it. */
function stubStorage(): DeadLetterStorage & { readonly entries: Map<string, DeadLetterEntry> } {
  const entries = new Map<string, DeadLetterEntry>()
  return {
    entries,
    save: async (entry) => void entries.set(entry.id, entry),
    findById: async (id) => entries.get(id) ?? null,
    find: async ({ jobType, limit = 100 }) =>
      [...entries.values()].filter((entry) => jobType === undefined || entry.jobType === jobType).slice(0, limit),
    markRetried: async (id, newJobId) => {
      const entry = entries.get(id)
      if (entry === undefined || entry.retriedAs !== null) return false
      entries.set(id, { ...entry, retriedAs: newJobId })
      return true
    },
    deleteMany: async (ids) => ids.filter((id) => entries.delete(id)).length,
  }
}

// A167 X059
it('three of the eighteen types are critical', () => {
  const critical = Object.values(JOB_TYPES).filter(isCriticalJobType)
  assert.deepEqual(critical, ['webhook-dispatch', 'audit-export', 'data-deletion'])
  assert.deepEqual(critical.toSorted(), [...CRITICAL_JOB_TYPES].toSorted())
})

it('a ULID and its UUID are one', () => {
  for (const id of ['00000000000000000000000000', '01K5XJ0VYV8R0W9S1Z2Q3T4VWX', '7ZZZZZZZZZZZZZZZZZZZZZZZZZ']) {
    assert.match(uuidOf(id), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    assert.equal(jobIdOf(uuidOf(id)), id)
  }
  assert.equal(jobIdOf('not a uuid'), null)
  assert.match(uuidOf('order-42'), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.notEqual(uuidOf('order-42'), uuidOf('order-43'))
  assert.equal(uuidOf('0198F1D2-0000-7000-8000-00000000000A'), '0198f1d2-0000-7000-8000-00000000000a')
})

it('entries are found by type, by org and by when they failed', async (t) => {
  const { mill, jobId } = await withDead(t, 'sqlite::memory:')
  const deadLetters = new DeadLetterManager(mill)
  const found = async (filter: Parameters<DeadLetterManager['find']>[0]): Promise<readonly string[]> =>
    (await deadLetters.find(filter)).map(({ originalJobId }) => originalJobId)
  const diedAt = Date.UTC(2026, 0, 31)
  assert.deepEqual(await found({ jobType: 'slack-sync', orgId: 'acme' }), [jobId])
  assert.deepEqual(await found({ orgId: 'other' }), [])
  assert.deepEqual(await found({ jobType: 'quota-check' }), [])
  assert.deepEqual(await found({ failedBefore: new Date(diedAt) }), [])
  assert.deepEqual(await found({ failedBefore: new Date(diedAt + 1) }), [jobId])
})

for (const url of ['memory:', 'sqlite::memory:']) {
  for (const kind of ['desk', 'stub'] as const) {
    describe(`the dead-letter manager on ${url} with ${kind === 'desk' ? 'its own letters' : 'a storage of its own'}`, () => {
      const managerOf = (mill: Mill): DeadLetterManager =>
        kind === 'desk' ? new DeadLetterManager(mill) : new DeadLetterManager(mill, stubStorage())

      // A165 A166 A172
      it('stores the entry of a dead job with its attempts, its error and its tenant', async (t) => {
        const { mill, jobId } = await withDead(t, url)
        const deadLetters = managerOf(mill)
        const { id } = await deadLetters.moveToDeadLetter(jobId)
        const entry = await deadLetters.findById(id)
        const { stack, ...error } = entry?.error ?? { message: '' }
        assert.match(stack ?? '', /slack is away/)
        assert.deepEqual(error, { message: 'slack is away', code: 'EAWAY' })
        assert.partialDeepStrictEqual(entry, {
          id: uuidOf(jobId),
          originalJobId: jobId,
          jobType: 'slack-sync',
          jobData: { channel: 7 },
          attempts: 2,
          failedAt: new Date(Date.UTC(2026, 0, 31)),
          tenant,
          retriedAs: null,
        })
        await deadLetters.moveToDeadLetter(jobId)
        assert.equal((await deadLetters.find()).length, 1, 'one entry, however often it is moved')
      })

      // A169 A171 X034
      it('retries as a new job with fresh attempts, which runs and disappears', async (t) => {
        const { mill, jobId } = await withDead(t, url)
        const deadLetters = managerOf(mill)
        const { id } = await deadLetters.moveToDeadLetter(jobId)
        const retried = await deadLetters.retry(id)
        assert.deepEqual(retried, { id: retried.id, type: 'slack-sync', attempts: 3, originalJobId: jobId })
        assert.notEqual(retried.id, jobId)
        const before = await mill.job(retried.id)
        assert.partialDeepStrictEqual(before, { state: 'queued', attempt: 0, attempts: 3, priority: 2, tenant })
        assert.deepEqual(before?.options, { timeoutMs: 9_000, backoff, keepCompleted: 0 })
        assert.equal(before?.payload, '{"channel":7}')
        assert.equal((await deadLetters.findById(id))?.retriedAs, retried.id)
        healed = true
        assert.equal((await drain(mill, [flaky])).complete, 1)
        assert.equal(await mill.job(retried.id), null)
      })

      // X035
      it('stores one job when two retry one entry, and refuses a third', async (t) => {
        const { mill, jobId } = await withDead(t, url)
        const deadLetters = managerOf(mill)
        const { id } = await deadLetters.moveToDeadLetter(jobId)
        const [one, other] = await Promise.all([deadLetters.retry(id), deadLetters.retry(id)])
        assert.equal(one.id, other.id)
        assert.equal((await mill.jobs({ state: 'queued' })).length, 1)
        await assert.rejects(deadLetters.retry(id), { code: 'ERR_STATE_TRANSITION' })
      })

      // A170
      it('says which dead letter it did not find', async (t) => {
        const { mill } = await withDead(t, url)
        for (const id of ['nothing', '0198f1d2-0000-7000-8000-000000000000']) {
          await assert.rejects(managerOf(mill).retry(id), { message: `Dead letter not found: ${id}` })
        }
      })

      // A173
      it('purges what matches, and counts it', async (t) => {
        const { mill, jobId } = await withDead(t, url)
        const deadLetters = managerOf(mill)
        for (let n = 0; n < 3; n += 1) await mill.enqueue(doomed, n)
        await drain(mill, [doomed])
        for (const { id } of await mill.jobs({ state: 'dead_letter' })) await deadLetters.moveToDeadLetter(id)
        assert.equal(await deadLetters.purge({ jobType: 'quota-check', limit: 2 }), 2)
        assert.equal(await deadLetters.purge({ jobType: 'quota-check' }), 1)
        assert.deepEqual(
          (await deadLetters.find()).map(({ originalJobId }) => originalJobId),
          [jobId],
        )
      })

      // X013
      it('purges a critical type only when forced', async (t) => {
        const { mill } = await withDead(t, url)
        const deadLetters = managerOf(mill)
        const erase = defineJob({ type: 'data-deletion', run: doomed.run ?? assert.fail() })
        // Newest first: the critical ones stand before and behind those that go.
        for (const job of [erase, doomed, erase, doomed, erase]) {
          await mill.enqueue(job, null)
          await drain(mill, [job])
        }
        for (const { id } of await mill.jobs({ state: 'dead_letter' })) await deadLetters.moveToDeadLetter(id)
        const typesLeft = async () => (await deadLetters.find()).map(({ jobType }) => jobType)
        assert.equal(await deadLetters.purge({ limit: 1 }), 1)
        assert.equal(await deadLetters.purge({}), 2)
        assert.deepEqual(await typesLeft(), ['data-deletion', 'data-deletion', 'data-deletion'])
        assert.equal(await deadLetters.purge({ jobType: 'data-deletion' }), 0)
        assert.equal(await deadLetters.purge({}, { force: true }), 3)
        assert.deepEqual(await typesLeft(), [])
      })

      // A165 A169 A171 A173
      it("takes another program's jobs, whatever their ids and payloads are", async (t) => {
        const { mill, jobId } = await withDead(t, url)
        const deadLetters = managerOf(mill)
        const own = (await mill.job(jobId)) ?? assert.fail()
        const ids = ['42', 'order 43', '0198f1d2-0000-7000-8000-00000000000a']
        for (const id of ids) {
          const payload = id === '42' ? 'not json' : '{}'
          await mill.engine.enqueue([{ ...own, id, payload, delayMs: 0, runAtMs: null, latest: null }])
        }
        assert.equal((await drain(mill, [flaky])).dead, 3)
        for (const id of [jobId, ...ids]) {
          const moved = await deadLetters.moveToDeadLetter(id)
          assert.equal((await deadLetters.findById(moved.id))?.originalJobId, id)
        }
        assert.equal((await deadLetters.find()).length, 4)
        const first = await deadLetters.findById(uuidOf('42'))
        assert.partialDeepStrictEqual(first, { jobData: 'not json', unparsed: true })
        const retried = await deadLetters.retry(uuidOf('42'))
        assert.equal((await mill.job(retried.id))?.payload, 'not json')
        assert.equal((await deadLetters.findById(uuidOf('42')))?.retriedAs, retried.id)
        await assert.rejects(deadLetters.retry(uuidOf('42')), { code: 'ERR_STATE_TRANSITION' })
        assert.equal(await deadLetters.findById(uuidOf('none')), null)
        assert.equal(await deadLetters.purge({ jobType: 'slack-sync' }), kind === 'desk' ? 3 : 4)
        assert.deepEqual(await deadLetters.find(), [])
      })

      it('moves nothing that is not dead', async (t) => {
        const { mill } = await withDead(t, url)
        const { id } = await mill.enqueue(flaky, null, { delay: '1h' })
        await assert.rejects(managerOf(mill).moveToDeadLetter(id), { code: 'ERR_STATE_TRANSITION' })
        await assert.rejects(managerOf(mill).moveToDeadLetter('01K5XJ0VYV8R0W9S1Z2Q3T4VWX'), {
          code: 'ERR_JOB_UNKNOWN',
        })
      })
    })
  }
}

// A168 X030 X038
it('a critical entry that is stored for the first time raises one alert, and a failing alerter does not stop the move', async (t) => {
  const mill = await open('memory:', { clock: new TestClock(Date.UTC(2026, 0, 31)) })
  t.after(() => mill.close())
  const alerts: WorkerAlert[] = []
  const storage = stubStorage()
  const deadLetters = new DeadLetterManager(mill, storage, { send: (alert) => alerts.push(workerAlert(alert)) })
  const ids: string[] = []
  for (const type of ['webhook-dispatch', 'quota-check']) {
    const job = defineJob({ type, run: doomed.run ?? assert.fail() })
    ids.push((await mill.enqueue(job, null, { tenant })).id)
    await drain(mill, [job])
  }
  for (const id of [...ids, ...ids]) await deadLetters.moveToDeadLetter({ id }, new Error('as the worker saw it'))
  const [id] = ids
  assert.deepEqual(alerts, [
    {
      severity: 'high',
      title: 'Critical job moved to dead letter: webhook-dispatch',
      message: `job ${id} failed after 1 attempts: no such org`,
      tags: { jobType: 'webhook-dispatch', jobId: id, tenantId: 'acme' },
      metadata: { jobType: 'webhook-dispatch', jobId: id, tenant },
    },
  ])
  assert.equal(storage.entries.size, 2)
  const told = mill.events.next('worker.error')
  const broken = new DeadLetterManager(mill, stubStorage(), { send: () => Promise.reject(new Error('pager down')) })
  assert.equal((await broken.moveToDeadLetter(id ?? '')).error.message, 'no such org')
  assert.partialDeepStrictEqual(await told, { during: 'alert' })
  const own = new DeadLetterManager(mill, undefined, { send: (alert) => alerts.push(workerAlert(alert)) })
  await own.moveToDeadLetter(id ?? '')
  assert.equal(alerts.length, 1, 'the letters of the mill are told by the mill')
})

// A166 X033
it('an entry has the tenant that a producer put into the data, and is found by it', async (t) => {
  const mill = await open('memory:', { clock: new TestClock(Date.UTC(2026, 0, 31)) })
  t.after(() => mill.close())
  const { id } = await mill.enqueue(doomed, { tenantContext: tenant })
  await drain(mill, [doomed])
  const [entry] = await new DeadLetterManager(mill).find({ orgId: 'acme' })
  assert.partialDeepStrictEqual(entry, { originalJobId: id, tenant })
})

it('a filter that means something else finds and deletes nothing', async (t) => {
  const { mill } = await withDead(t, 'memory:')
  const deadLetters = new DeadLetterManager(mill)
  const refused = { code: 'ERR_OPTION_INVALID' }
  const dates = [{ failedBefore: new Date('soon') }, { failedBefore: '2026-01-01' }]
  for (const bad of [{ type: 'quota-check' }, { jobType: '' }, { orgId: null }, { limit: 0 }, [], ...dates]) {
    await assert.rejects(deadLetters.find(bad as object), refused, JSON.stringify(bad))
    await assert.rejects(deadLetters.purge(bad as object), refused, JSON.stringify(bad))
  }
  await assert.rejects(deadLetters.purge({ jobType: undefined } as object), refused)
  assert.equal((await deadLetters.find()).length, 1)
})
