/** The outbox on both stores, towards an engine in memory that can be away. */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { z } from 'zod'
import { open } from '../../src/client/mill.ts'
import { diagnose, outboxOf } from '../../src/engine/capability-checks.ts'
import type { Finding } from '../../src/engine/engine.ts'
import { MemoryEngine, MemoryStore } from '../../src/engines/memory/index.ts'
import { EngineError, OptionError, UnsupportedError } from '../../src/errors.ts'
import { defineJob } from '../../src/job/definition.ts'
import type { NewJob } from '../../src/job/job.ts'
import { type OpenedOutbox, type OutboxOptions, openOutbox } from '../../src/outbox/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { newJob } from '../fixtures/new-job.ts'
import { eventually } from '../kafka/kafka-fixtures.ts'
import { outboxStores } from './outbox-stores.ts'

const note = defineJob({ type: 'note', payload: z.number() })

/** What has arrived, batch by batch; refuses what it is told to, and everything while it is away. */
class Target extends MemoryEngine {
  readonly batches: (readonly NewJob[])[] = []
  isAway = false
  refused: string | null = null

  constructor() {
    super({ clock: systemClock, store: new MemoryStore() })
  }

  override async enqueue(jobs: readonly NewJob[]) {
    if (this.isAway) throw new EngineError('ERR_STORAGE_BUSY', 'away')
    if (jobs.some(({ payload }) => payload === this.refused)) throw new EngineError('ERR_STORAGE_FAILED', 'too large')
    this.batches.push(jobs)
    return super.enqueue(jobs)
  }

  get payloads(): readonly number[] {
    return this.batches.flat().map(({ payload }) => Number(payload))
  }
}

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n)

for (const store of outboxStores()) {
  describe(`an outbox in ${store.name}`, () => {
    async function opened(
      t: TestContext,
      options: Partial<OutboxOptions> = {},
    ): Promise<{ readonly target: Target; readonly outbox: OpenedOutbox; readonly errors: unknown[] }> {
      const target = new Target()
      const errors: unknown[] = []
      const outbox = await openOutbox({
        store: options.store ?? (await store.url()),
        target,
        ...{ poll: 10, interval: 2_000, onError: (error) => void errors.push(error) },
        ...options,
      })
      t.after(() => outbox.close())
      return { target, outbox, errors }
    }

    test('has what a committed transaction added, and nothing of one that was rolled back', async (t) => {
      const { target, outbox } = await opened(t)
      const mill = await open(outbox.engine)
      const first = await store.begin()
      await mill.enqueue(note, 1, { within: first.within })
      await first.end('ROLLBACK')
      const second = await store.begin()
      const receipt = await mill.enqueue(note, 2, { within: second.within })
      await mill.enqueueMany(note, [3, 4], { within: second.within })
      assert.equal(target.batches.length, 0, 'it was sent before the commit')
      await second.end('COMMIT')
      await eventually(() => target.payloads.length >= 3, 'the jobs', 30_000)
      assert.deepEqual(target.payloads, [2, 3, 4])
      assert.equal(target.batches[0]?.[0]?.id, receipt.id)
      await eventually(async () => (await outbox.size()).jobs === 0, 'an empty outbox', 30_000)
      assert.deepEqual(await outbox.size(), { jobs: 0, oldestMs: null })
    })

    test('keeps the order over many batches, and sends each job once while nobody dies', async (t) => {
      const { target, outbox } = await opened(t, { batch: 7 })
      const mill = await open(outbox.engine)
      for (const from of [0, 100, 200])
        await mill.enqueueMany(
          note,
          upTo(100).map((n) => from + n),
        )
      await eventually(() => target.payloads.length >= 300, 'the jobs', 30_000)
      assert.deepEqual(target.payloads, upTo(300))
      assert.ok(target.batches.every((batch) => batch.length <= 7))
    })

    test('waits while the target is away, tells of it, and goes on in order', async (t) => {
      const { target, outbox, errors } = await opened(t, { batch: 10 })
      const mill = await open(outbox.engine)
      target.isAway = true
      const startedMs = Date.now()
      await mill.enqueueMany(note, upTo(50))
      await eventually(() => errors.length >= 3, 'errors', 30_000)
      const { jobs, oldestMs } = await outbox.size()
      assert.equal(jobs, 50)
      assert.ok(oldestMs !== null && oldestMs >= startedMs - 1_000 && oldestMs <= Date.now() + 1_000)
      target.isAway = false
      await eventually(() => target.payloads.length >= 50, 'the jobs', 30_000)
      assert.deepEqual(target.payloads, upTo(50))
    })

    test('lets through what stands before a job that the target refuses', async (t) => {
      const { target, outbox, errors } = await opened(t)
      const mill = await open(outbox.engine)
      target.refused = '5'
      await mill.enqueueMany(note, upTo(8))
      await eventually(() => target.payloads.length >= 5 && errors.length >= 2, 'the jobs before it', 30_000)
      assert.deepEqual(target.payloads, [0, 1, 2, 3, 4])
      target.refused = null
      await eventually(() => target.payloads.length >= 8, 'the others', 30_000)
      assert.deepEqual(target.payloads, upTo(8))
    })

    test('is forwarded by one of several processes, and by another when that one ends', async (t) => {
      const url = await store.url()
      // A slow machine must not cost anyone the leadership.
      const one = await opened(t, { store: url, interval: 10_000 })
      await eventually(() => one.outbox.leads, 'the first leader', 30_000)
      const two = await opened(t, { store: url, interval: 10_000 })
      const mill = await open(two.outbox.engine)
      await mill.enqueueMany(note, upTo(20))
      await eventually(() => one.target.payloads.length >= 20, 'the jobs', 30_000)
      assert.deepEqual([one.outbox.leads, two.outbox.leads], [true, false])
      assert.deepEqual(two.target.payloads, [])
      await one.outbox.close()
      await mill.enqueue(note, 20)
      await eventually(() => two.target.payloads.length >= 1, 'the job of the second')
      assert.deepEqual(two.target.payloads, [20])
      assert.equal(two.outbox.leads, true)
    })

    test('keeps outboxes of different names apart, and leaves a store open that was open', async (t) => {
      const local = await open(await store.url())
      t.after(() => local.close())
      const left = await opened(t, { store: local.engine, name: 'left' })
      const right = await opened(t, { store: local.engine, name: 'right', forward: false })
      const [millLeft, millRight] = [await open(left.outbox.engine), await open(right.outbox.engine)]
      await millRight.enqueue(note, 2)
      await millLeft.enqueue(note, 1)
      await eventually(() => left.target.payloads.length >= 1, 'the job of the left one', 30_000)
      assert.deepEqual([left.target.payloads, right.target.payloads], [[1], []])
      assert.equal((await right.outbox.size()).jobs, 1)
      await Promise.all([millLeft.close(), millRight.close()])
      await local.engine.ping()
    })

    test('is a whole mill: its workers run on the target, delays count from the enqueue', async (t) => {
      const { target, outbox } = await opened(t)
      const ran: number[] = []
      const work = defineJob({ type: 'work', payload: z.number(), run: ({ payload }) => void ran.push(payload) })
      const mill = await open(outbox.engine)
      await mill.work([work])
      await mill.enqueue(work, 1, { delay: 50 })
      await mill.enqueue(work, 2)
      await eventually(() => ran.length >= 2, 'both jobs', 30_000)
      assert.deepEqual(new Set(ran), new Set([1, 2]))
      const beforeMs = Date.now()
      await mill.enqueue(work, 3, { delay: '1h' })
      await eventually(() => target.payloads.includes(3), 'the job that is due later', 30_000)
      const late = target.batches.flat().find(({ payload }) => payload === '3')
      assert.ok(late?.runAtMs && late.runAtMs >= beforeMs + 3_600_000 && late.runAtMs <= Date.now() + 3_600_000)
      assert.equal(late.delayMs, 0)
      await assert.rejects(mill.enqueue(work, 3, { after: 'somebody' }), UnsupportedError)
      await mill.close()
      await assert.rejects(mill.enqueue(work, 4), { code: 'ERR_CLOSED' })
      await assert.rejects(outbox.engine.enqueue([]), { code: 'ERR_CLOSED' })
    })

    test('removes what was sent, and nothing that was added since, however often it is told', async (t) => {
      const local = await open(await store.url())
      t.after(() => local.close())
      const table = outboxOf(local.engine)
      const limits = { max: 10, bytesMax: 1_000_000 }
      await table.add('line', [newJob({ payload: '1' })])
      const sent = await table.first('line', limits)
      await table.remove('line', sent)
      await table.add('line', [newJob({ payload: '2' })])
      await table.remove('line', sent)
      assert.deepEqual(
        (await table.first('line', limits)).map(({ job }) => job.payload),
        ['2'],
      )
    })

    // Two writers at the same time: SQLite has one.
    if (store.name === 'Postgres')
      test('finds a transaction that commits after a later one', async (t) => {
        const { target, outbox } = await opened(t)
        const mill = await open(outbox.engine)
        const [early, late] = [await store.begin(), await store.begin()]
        await mill.enqueue(note, 1, { within: early.within })
        await mill.enqueue(note, 2, { within: late.within })
        await late.end('COMMIT')
        await eventually(
          async () => target.payloads.includes(2) && (await outbox.size()).jobs === 0,
          'the later',
          30_000,
        )
        await early.end('COMMIT')
        await eventually(() => target.payloads.length >= 2, 'the earlier', 30_000)
        assert.deepEqual(target.payloads, [2, 1])
      })

    test('is something for the doctor of the store once nobody forwards it', async (t) => {
      const local = await open(await store.url())
      t.after(() => local.close())
      const { outbox } = await opened(t, { store: local.engine, forward: false })
      const found = async (): Promise<readonly Finding[]> =>
        (await diagnose(local.engine)).filter(({ subject }) => subject === 'outbox')
      assert.deepEqual(await found(), [])
      await (await open(outbox.engine)).enqueueMany(note, upTo(3))
      const [finding] = await found()
      assert.equal(finding?.severity, 'ok')
      assert.match(finding?.detail ?? '', /^3 jobs in the outbox 'outbox', the first for \d+ s$/)
    })

    test('takes the large ones one by one', async (t) => {
      const { target, outbox } = await opened(t)
      const letter = defineJob({ type: 'letter', payload: z.string() })
      const mill = await open(outbox.engine, { payloadBytesMax: 8_000_000 })
      await mill.enqueueMany(letter, ['a', 'x'.repeat(5_000_000), 'b', 'c'])
      await eventually(() => target.batches.flat().length >= 4, 'the jobs', 30_000)
      assert.deepEqual(
        target.batches.map((batch) => batch.map(({ payload }) => payload.length)),
        [[3], [5_000_002], [3, 3]],
      )
    })
  })
}

test('what cannot be an outbox is refused', async () => {
  await assert.rejects(openOutbox({ store: 'memory:', target: 'memory:' }), (error) => {
    assert.ok(error instanceof UnsupportedError)
    assert.match(error.message, /SQLite or Postgres/)
    return true
  })
  for (const wrong of [{ batch: 0 }, { batch: 1.5 }, { name: '' }, { poll: 0 }, { interval: 1 }] as const)
    await assert.rejects(openOutbox({ store: 'sqlite::memory:', target: 'memory:', ...wrong }), OptionError)
})
