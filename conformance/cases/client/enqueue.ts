import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { DELAY_MS, delay, keys, latest, looking, need, transactions } from '../../needs.ts'
import { gate, rejection } from '../../stage.ts'

export const clientEnqueue: CaseFile = {
  level: 'client',
  concept: 'Enqueue through the client',
  cases: [
    {
      name: 'bad options are refused and nothing is stored',
      guarantees: ['I1'],
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage)
        const bad = [
          { priority: 11 },
          { attempts: 0 },
          { delay: -1 },
          { key: '' },
          { key: 'a', latest: 'b' },
          { tags: [''] },
        ]
        for (const options of bad) {
          assert.equal(
            await rejection(mill.enqueue(job, { n: 1 }, options)),
            'ERR_OPTION_INVALID',
            JSON.stringify(options),
          )
        }
        await stage.expectCounts({})
      },
    },
    {
      name: 'tags are shown with the job: its own, or those of its definition',
      guarantees: ['I1'],
      ...need(looking),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { tags: ['billing'] })
        const tagsAfter = async (options: { readonly tags?: readonly string[] }) =>
          (await mill.job((await mill.enqueue(job, { n: 1 }, options)).id))?.tags
        assert.deepEqual(await tagsAfter({}), ['billing'])
        assert.deepEqual(await tagsAfter({ tags: ['import-7', 'Grüße', 'import-7'] }), ['import-7', 'Grüße'])
        assert.deepEqual(await tagsAfter({ tags: [] }), [])
      },
    },
    {
      name: 'many jobs of one call run once each',
      guarantees: ['I1', 'I4'],
      async run(stage) {
        const mill = await stage.mill()
        const ran: number[] = []
        const job = numberedJob(stage, { run: ({ payload }) => ran.push(payload.n) })
        const payloads = Array.from({ length: 50 }, (_, n) => ({ n }))
        const receipts = await mill.enqueueMany(job, payloads)
        assert.equal(new Set(receipts.map(({ id }) => id)).size, 50)
        const seen = record(mill)
        await mill.work([job])
        await stage.until(SOON_MS, () => seen.settled.length === 50, 'the end of all jobs')
        assert.deepEqual(
          [...ran].sort((a, b) => a - b),
          payloads.map(({ n }) => n),
        )
      },
    },
    {
      // B107 B177
      name: 'a key enqueued twice runs once, and both callers hold the same id',
      guarantees: ['I7'],
      ...need(keys),
      async run(stage) {
        const mill = await stage.mill()
        const ran: number[] = []
        const job = numberedJob(stage, { run: ({ payload }) => ran.push(payload.n) })
        const one = await mill.enqueue(job, { n: 1 }, { key: 'order-42' })
        const two = await mill.enqueue(job, { n: 2 }, { key: 'order-42' })
        assert.deepEqual([one.status, two.status, two.id], ['enqueued', 'duplicate', one.id])
        const seen = record(mill)
        await mill.work([job])
        await stage.until(SOON_MS, () => seen.settled.length === 1, 'the end of the job')
        await stage.harness.advance(100)
        assert.deepEqual(ran, [1])
        assert.equal((await mill.enqueue(job, { n: 3 }, { key: 'order-42' })).status, 'enqueued')
      },
    },
    {
      // C19 C05
      name: 'of many versions of a latest key that arrive while one runs, only the last runs after it',
      guarantees: ['I4'],
      ...need(latest),
      async run(stage) {
        const mill = await stage.mill()
        const ran: number[] = []
        const hold = gate()
        const job = numberedJob(stage, {
          run: async ({ payload }) => {
            ran.push(payload.n)
            await hold.opened
          },
        })
        await mill.work([job], { concurrency: 5 })
        await mill.enqueue(job, { n: 0 }, { latest: 'doc' })
        await stage.until(SOON_MS, () => ran.length === 1, 'the first start')
        for (let n = 1; n <= 9; n += 1) await mill.enqueue(job, { n }, { latest: 'doc' })
        await stage.harness.advance(100)
        assert.deepEqual(ran, [0], 'two versions of one key at once')
        const seen = record(mill)
        hold.open()
        await stage.until(SOON_MS, () => seen.settled.length === 2, 'the end of both')
        assert.deepEqual(ran, [0, 9])
      },
    },
    {
      // A39
      name: 'a delayed job does not start before its time',
      guarantees: ['I11'],
      ...need(delay),
      async run(stage) {
        const mill = await stage.mill()
        const started: number[] = []
        const job = numberedJob(stage, { run: () => started.push(stage.nowMs) })
        await mill.work([job])
        const dueMs = stage.nowMs + DELAY_MS
        await mill.enqueue(job, { n: 1 }, { delay: DELAY_MS })
        await mill.enqueue(job, { n: 2 }, { at: new Date(dueMs) })
        await stage.until(DELAY_MS + SOON_MS, () => started.length === 2, 'both starts')
        assert.ok(
          started.every((atMs) => atMs >= dueMs),
          'a job started before its time',
        )
      },
    },
    {
      // X145
      name: 'a job enqueued within a transaction runs after its commit, and never after a rollback',
      guarantees: ['I1'],
      ...need(transactions),
      async run(stage) {
        const mill = await stage.mill()
        const ran: number[] = []
        const job = numberedJob(stage, { run: ({ payload }) => ran.push(payload.n) })
        for (const n of [1, 2]) {
          const transaction = await stage.harness.transaction?.()
          assert.ok(transaction, 'the engine joins transactions, so its harness must offer one')
          await mill.enqueue(job, { n }, { within: transaction.within })
          await (n === 1 ? transaction.rollback() : transaction.commit())
        }
        await mill.work([job])
        await stage.until(SOON_MS, () => ran.length > 0, 'the start')
        await stage.harness.advance(200)
        assert.deepEqual(ran, [2])
      },
    },
  ],
}
