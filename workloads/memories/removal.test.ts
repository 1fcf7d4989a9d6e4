import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { systemClock } from '../../src/time/clock.ts'
import { WORKLOAD_PLACES } from '../../test/fixtures/workload-places.ts'
import { MemoryRemoval } from './removal.ts'
import { ANN, jobOf, MapVectors, tablesIn } from './rig.ts'
import { MemoryCleanupWorker } from './upkeep/cleanup.ts'

for (const { name, makePlace } of WORKLOAD_PLACES) {
  describe(`syntheses of syntheses on ${name}`, () => {
    const opened = tablesIn(makePlace)

    /** Two memories and their synthesis, and a third one to merge with it. */
    const family = async () => {
      const { repository, remember, database, clock } = opened()
      const [a = '', b = '', c = ''] = await remember(new MapVectors(), ['a secret', 'b', 'c'])
      const merge = async (sourceIds: readonly string[]) => {
        const target = { id: crypto.randomUUID(), content: `of ${sourceIds.length}`, confidence: 0.7 }
        const sources = await repository.findByIds(sourceIds, ANN)
        await repository.merges.merge({
          owner: ANN,
          jobId: target.id,
          consolidationType: 'other',
          sources,
          target,
          halves: false,
        })
        return target.id
      }
      const removal = new MemoryRemoval({ database, clock, removeVectors: async () => 0 })
      return { a, b, c, merge, removal, first: await merge([a, b]) }
    }
    const left = async (ids: readonly string[]) => (await opened().repository.findByIds(ids, ANN)).map(({ id }) => id)

    test('what was written from a memory is forgotten with it, also where a cleanup has removed what was between', async () => {
      const { repository, database, clock } = opened()
      const { a, b, c, first, merge, removal } = await family()
      const second = await merge([first, c])
      await repository.updateImportance(first, 0, ANN)
      const cleanup = new MemoryCleanupWorker(database, removal, { clock })
      const job = jobOf({ importanceBelow: 0.05, olderThanDays: 0, types: ['semantic'] })
      assert.equal((await cleanup.process(job.data, job)).removedUnimportant, 1)
      assert.deepEqual(await left([first, second]), [second])
      assert.deepEqual((await removal.forget(ANN, [a])).derived, [second])
      assert.deepEqual(await left([a, b, c, first, second]), [b, c])
    })

    test('a synthesis that is written while its source is forgotten is forgotten too, or not written', async () => {
      const { database } = opened()
      const { a, b, c, first, removal } = await family()
      const second = crypto.randomUUID()
      let forgetting: Promise<unknown> = Promise.resolve()
      // The steps of a merge, with a pause before its commit.
      await database.transaction(async ({ rows, dialect }) => {
        await rows(`SELECT id FROM {memories} WHERE id IN ($1, $2) ORDER BY id${dialect.forUpdate}`, [first, c])
        forgetting = removal.forget(ANN, [a])
        if (dialect.name === 'postgres') await isWaiting()
        await rows(
          `INSERT INTO {memories} (id, workspace_id, user_id, type, content, importance, source_type, metadata, created_at, updated_at)
           SELECT $1, workspace_id, user_id, type, 'holds the secret', importance, source_type, metadata, created_at, updated_at
           FROM {memories} WHERE id = $2`,
          [second, first],
        )
        await rows(
          `INSERT INTO {memory_merges} (target_id, source_id, source_version, workspace_id, user_id, consolidation_type, job_id, merged_at)
           SELECT $1, target_id, 1, workspace_id, user_id, consolidation_type, 'j', merged_at FROM {memory_merges} WHERE source_id = $2`,
          [second, a],
        )
      })
      await forgetting
      assert.deepEqual(await left([a, b, c, first, second]), [b, c])
    })

    /** Until a statement of another connection waits for a lock. */
    const isWaiting = async (): Promise<void> => {
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%memories%'`
      while ((await opened().database.read(waiting)).length === 0) await systemClock.sleep(5)
    }
  })
}
