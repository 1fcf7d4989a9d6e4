import assert from 'node:assert/strict'
import type { Outcome } from '../../../src/engine/outcome.ts'
import type { CaseFile } from '../../case.ts'
import { deadLetters, inspection, need, retention } from '../../needs.ts'
import { boom, type Stage } from '../../stage.ts'

const done = { kind: 'complete', result: '1', durationMs: 1 } as const

/** Runs a job to its end and returns its id. */
async function finish(stage: Stage, outcome: Outcome, fields: Parameters<Stage['put']>[0] = {}): Promise<string> {
  const { id } = await stage.put(fields)
  const consumer = await stage.consume()
  await stage.settle(consumer, await stage.one(consumer), outcome)
  await consumer.close()
  return id
}

const stored = async (stage: Stage, ids: readonly string[]): Promise<readonly boolean[]> =>
  ((await stage.engine.inspector?.find(ids)) ?? []).map((job) => job !== null)

export const removalOptions: CaseFile = {
  level: 'port',
  concept: 'What a finished job takes with it',
  cases: [
    {
      name: 'removal options: a job that keeps none of its type goes alone, whether it completes or dies',
      guarantees: ['I1', 'I9'],
      ...need(retention, deadLetters, inspection),
      async run(stage) {
        const told = [undefined, 5, undefined, 0, undefined] as const
        const ends: [completed: string, dead: string][] = []
        for (const keep of told) {
          const bound = keep === undefined ? {} : { keep }
          const completed = await finish(stage, { ...done, ...bound })
          ends.push([completed, await finish(stage, { kind: 'dead', error: boom, ...bound })])
        }
        assert.deepEqual(
          await Promise.all(ends.map((pair) => stored(stage, pair))),
          told.map((keep) => [keep !== 0, keep !== 0]),
        )
        assert.deepEqual(
          (await stage.engine.deadLetters?.audit({ limit: 10 }))?.map(({ who, jobId }) => [who, jobId]),
          [['retention', ends[3]?.[1]]],
        )
      },
    },
    {
      name: `removal options: a job's own number removes only those that have one of their own, and none that may stay longer`,
      guarantees: ['I1', 'I9'],
      ...need(retention, deadLetters, inspection),
      async run(stage) {
        const ids: string[] = []
        // What the options of each say, and whether it is gone at the end.
        const told = [
          [undefined, false],
          [null, false],
          [1, true],
          [9, false],
          [1, true],
          [1, false],
        ] as const
        for (const [own] of told) {
          const options = own === undefined ? null : { keepDead: own, keepCompleted: own }
          const bound = typeof own === 'number' ? { keep: own, keepIsOwn: true } : {}
          ids.push(await finish(stage, { ...done, ...bound }, { options }))
          ids.push(await finish(stage, { kind: 'dead', error: boom, ...bound }, { options }))
        }
        assert.deepEqual(
          await stored(stage, ids),
          told.flatMap(([, isGone]) => [!isGone, !isGone]),
        )
      },
    },
    {
      name: `removal options: a definition's number removes none that was told to stay`,
      guarantees: ['I1', 'I9'],
      ...need(retention, deadLetters, inspection),
      async run(stage) {
        const ids: string[] = []
        const told = [
          [null, false],
          [undefined, true],
          [9, false],
          [undefined, true],
          [undefined, false],
        ] as const
        for (const [own] of told) {
          const options = own === undefined ? null : { keepDead: own, keepCompleted: own }
          const bound = own === undefined ? { keep: 1 } : own === null ? {} : { keep: own, keepIsOwn: true }
          ids.push(await finish(stage, { ...done, ...bound }, { options }))
          ids.push(await finish(stage, { kind: 'dead', error: boom, ...bound }, { options }))
        }
        assert.deepEqual(
          await stored(stage, ids),
          told.flatMap(([, isGone]) => [!isGone, !isGone]),
        )
      },
    },
  ],
}
