/** The excuses of engines with partitions. They promise other things, not fewer, so the twins say what holds instead. */
import assert from 'node:assert/strict'
import type { Excuse } from './case.ts'
import { complete, first, never, retry } from './stage.ts'

/** How long a job may take to reach another member when its holder has left; a busy machine takes longer. */
const HANDOVER_MS = 30_000

/** Jobs that any consumer may claim. */
export const sharing: Excuse = {
  excuse: ({ capabilities: { keys: kind } }) =>
    kind === 'partition' ? 'gives the jobs of a partition to one member alone, as long as it is there' : null,
  refusal: async (stage) => {
    const { id } = await stage.put()
    const consumer = await stage.consume()
    const lease = await stage.one(consumer)
    const rival = await stage.consume({ on: await stage.other() })
    await stage.settle(consumer, lease, retry())
    await stage.none(rival, 'a job was handed to a member that does not have its partition')
    await consumer.close()
    const handed = first(await rival.claim({ max: 5, waitMs: HANDOVER_MS, signal: never }))
    assert.deepEqual([handed.job.id, handed.attempt], [id, 2])
    await stage.settle(rival, handed, complete)
    const isCompleted = async (): Promise<boolean> => (await stage.counts()).completed === 1
    await stage.until(HANDOVER_MS, isCompleted, 'the completion, as another view sees it')
    await stage.expectCounts({ completed: 1 })
  },
}

/** Leases that outlive the engine that held them. */
export const outliving: Excuse = {
  excuse: ({ capabilities: { keys: kind } }) =>
    kind === 'partition' ? 'hands what a closing engine holds to the next member at once, its start counted' : null,
  refusal: async (stage) => {
    const { id } = await stage.put()
    const rival = await stage.other()
    const held = await stage.one(await stage.consume({ on: rival }))
    await rival.close()
    const consumer = await stage.consume()
    const handed = first(await consumer.claim({ max: 5, waitMs: HANDOVER_MS, signal: never }))
    assert.deepEqual([handed.job.id, handed.attempt], [id, 2])
    assert.notEqual(handed.token, held.token)
  },
}
