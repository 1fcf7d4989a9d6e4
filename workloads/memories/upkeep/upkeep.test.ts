import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { openForTest } from '../../../src/testing/index.ts'
import { WORKLOAD_PLACES } from '../../../test/fixtures/workload-places.ts'
import { numberOf } from '../../database/columns.ts'
import { memorySchedules } from '../memories.ts'
import { MemoryRemoval } from '../removal.ts'
import { ANN, BOB, jobOf, MapVectors, tablesIn } from '../rig.ts'
import { cleanupPayload, MemoryCleanupWorker } from './cleanup.ts'
import { MemoryDecayWorker } from './decay.ts'

const DAY_MS = 86_400_000

// A131
test('the schedules run the decay every six hours with the factor of the design, and the cleanup at night', async () => {
  await using stage = await openForTest()
  await stage.mill.keep({ schedules: memorySchedules })
  const runs = async (name: string) =>
    (await stage.mill.schedules.preview(name, { count: 4 })).map((atMs) => new Date(atMs).toISOString().slice(11, 16))
  assert.deepEqual((await runs('memory-importance-decay')).toSorted(), ['00:00', '06:00', '12:00', '18:00'])
  assert.deepEqual(await runs('memory-cleanup'), ['03:30', '03:30', '03:30', '03:30'])
  assert.deepEqual(
    memorySchedules.map(({ payload }) => payload),
    [{ decayFactor: 0.99 }, { importanceBelow: 0.05, olderThanDays: 30 }],
  )
})

for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`upkeep on ${name}`, () => {
    const opened = tablesIn(makePlace)
    beforeEach(() => opened().database.write([{ sql: 'DELETE FROM {memories}' }]))

    const sum = async (): Promise<string> => {
      const [row = {}] = await opened().database.read('SELECT sum(importance) AS total FROM {memories}')
      return numberOf(row, 'total').toFixed(6)
    }

    /** In one statement: a round trip for each would take seconds. */
    const saveMany = (count: number) =>
      opened().database.write([
        {
          sql: `INSERT INTO {memories} (id, workspace_id, user_id, type, content, importance, source_type, metadata, created_at, updated_at)
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
            SELECT 'm-' || i, 'w' || (i % 7), 'u', 'episodic', 'memory ' || i, 1, 'user', '{}', $1, $1 FROM n`,
          values: [new Date(opened().clock.nowMs()).toISOString()],
        },
      ])

    // A02
    test('decay multiplies each importance once for a job, in chunks, also when it dies between two of them', async () => {
      const { repository, database, clock } = opened()
      const worker = new MemoryDecayWorker(database, { clock })
      await saveMany(2_500)
      const stopping = new AbortController()
      const dying = {
        ...jobOf({ decayFactor: 0.5 }, `decay-${name}`),
        signal: stopping.signal,
        updateProgress: async () => {
          stopping.abort()
          return true
        },
      }
      await assert.rejects(worker.process(dying.data, dying), { name: 'AbortError' })
      assert.equal(await sum(), '2000.000000')
      // Saved after the run began: it is not part of it.
      await clock.advance(1_000)
      await repository.save({ ...ANN, content: 'new', importance: 1 })
      const job = jobOf(dying.data, `decay-${name}`)
      // Two workers with the same job at once, and again afterwards.
      const results = await Promise.all([worker.process(job.data, job), worker.process(job.data, job)])
      assert.deepEqual([...results, await worker.process(job.data, job)], Array(3).fill({ memoriesDecayed: 2_500 }))
      assert.equal(await sum(), '1251.000000')
      const next = jobOf({ decayFactor: 0.99 }, `next-${name}`)
      assert.deepEqual(await worker.process(next.data, next), { memoriesDecayed: 2_501 })
      assert.equal(await sum(), (1_251 * 0.99).toFixed(6))
    })

    test('decay never leaves the range, however often it runs', async () => {
      const { repository, database, clock } = opened()
      const worker = new MemoryDecayWorker(database, { clock })
      await repository.saveAll([
        { ...ANN, content: 'least', importance: Number.MIN_VALUE },
        { ...ANN, content: 'none', importance: 0 },
      ])
      for (const id of ['r1', 'r2']) {
        const job = jobOf({ decayFactor: 0.01 }, `${id}-${name}`)
        await worker.process(job.data, job)
      }
      assert.equal(await sum(), '0.000000')
    })

    // A02
    test('cleanup removes what is expired or old and unimportant, with vectors, and keeps syntheses', async () => {
      const { repository, database, clock } = opened()
      const vectors = new MapVectors()
      const removal = new MemoryRemoval({ database, clock, removeVectors: (ids) => vectors.remove('memories', ids) })
      const worker = new MemoryCleanupWorker(database, removal, { clock })
      const expiresAt = new Date(clock.nowMs() + DAY_MS)
      const old = await repository.saveAll([
        { ...ANN, content: 'faded', importance: 0.01 },
        { ...ANN, content: 'important', importance: 0.9 },
        { ...ANN, content: 'concluded', importance: 0.01, type: 'semantic' },
        { ...BOB, content: 'expired', importance: 1, type: 'semantic', expiresAt },
      ])
      await clock.advance(40 * DAY_MS)
      const recent = await repository.save({ ...ANN, content: 'recent', importance: 0.01 })
      const all = [...old, recent]
      await vectors.upsert(
        'memories',
        all.map(({ id }) => ({ id, vector: [1], seq: 1 })),
      )
      const clean = async (data: object) => {
        const job = jobOf(cleanupPayload.parse(data))
        return worker.process(job.data, job)
      }
      assert.deepEqual(await clean({}), { removedUnimportant: 1, removedExpired: 1, vectorsRemoved: 2 })
      assert.deepEqual(await clean({}), { removedUnimportant: 0, removedExpired: 0, vectorsRemoved: 0 })
      const left = async () =>
        (await database.read('SELECT content FROM {memories} ORDER BY content')).map((row) => row.content)
      assert.deepEqual(await left(), ['concluded', 'important', 'recent'])
      assert.equal(vectors.stored.size, 3)
      await clean({ importanceBelow: 1, olderThanDays: 0, types: ['semantic'] })
      assert.deepEqual(await left(), ['important', 'recent'])
      assert.throws(() => cleanupPayload.parse({ importance: 1 }), /importance/)
    })
  })
}
