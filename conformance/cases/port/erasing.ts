import assert from 'node:assert/strict'
import { openDesk } from '../../../src/desk/desk.ts'
import type { Actor, DeadLetters } from '../../../src/engine/dead-letters.ts'
import type { Outcome } from '../../../src/engine/outcome.ts'
import type { NewJob } from '../../../src/job/job.ts'
import type { CaseFile } from '../../case.ts'
import { cancellation, deadLetters, dependencies, erasing, need } from '../../needs.ts'
import { complete, type Stage } from '../../stage.ts'

const by: Actor = { who: 'ann', reason: 'request 4711' }
const SECRET = 'zanzibar'
const died: Outcome = { kind: 'dead', error: { name: 'Error', code: null, message: `no ${SECRET}`, stack: SECRET } }

function letters(stage: Stage): DeadLetters {
  assert.ok(stage.engine.deadLetters, 'the engine declares dead letters and has none')
  return stage.engine.deadLetters
}

/** A job with a secret in all that it leaves behind. */
async function finish(stage: Stage, outcome: Outcome, fields: Partial<NewJob> = {}): Promise<string> {
  const { id } = await stage.put({ payload: JSON.stringify({ of: SECRET }), key: `key of ${SECRET}`, ...fields })
  const consumer = await stage.consume()
  const lease = await stage.one(consumer)
  assert.equal(await consumer.report(lease, JSON.stringify(SECRET)), true)
  await stage.settle(consumer, lease, outcome)
  await consumer.close()
  return id
}

/** All that the port tells of a job. */
async function told(stage: Stage, id: string): Promise<string> {
  const { inspector } = stage.engine
  const audit = await letters(stage).audit({ limit: 100 })
  const jobs = await inspector?.list({ limit: 100 })
  return JSON.stringify([await inspector?.find([id]), await inspector?.history(id), jobs, audit])
}

export const erasingCases: CaseFile = {
  level: 'port',
  concept: 'Erasing',
  cases: [
    {
      name: 'an erased dead letter leaves entries that say who, when and why, and nothing of the job',
      guarantees: ['I9'],
      ...need(erasing, deadLetters),
      async run(stage) {
        const id = await finish(stage, died)
        await letters(stage).discard([id], { who: 'bob', reason: 'too late' })
        await letters(stage).undiscard([id], by)
        assert.match(await told(stage, id), new RegExp(SECRET), 'the test looks where the secret is')
        assert.deepEqual(await letters(stage).remove([id, id], by, { erase: true }), [true, false])
        assert.doesNotMatch(await told(stage, id), new RegExp(SECRET))
        assert.deepEqual(await stage.engine.inspector?.find([id]), [null])
        await stage.expectCounts({})
        const audit = await letters(stage).audit({ jobId: id, limit: 100 })
        assert.deepEqual(
          audit.map(({ action, who, reason, type, before, after }) => ({ action, who, reason, type, before, after })),
          [
            { action: 'erase', ...by, type: stage.type, before: { state: 'dead_letter', entries: 2 }, after: null },
            { action: 'undo', ...by, type: stage.type, before: { erased: true }, after: { erased: true } },
            {
              ...{ action: 'discard', who: 'bob', reason: 'too late', type: stage.type },
              ...{ before: { erased: true }, after: { erased: true } },
            },
          ],
        )
        assert.ok((await stage.put({ key: `key of ${SECRET}` })).receipt.status === 'enqueued', 'its key is free')
      },
    },
    {
      name: 'what the audit says of a job that is gone can be erased, and what it says of others stays',
      guarantees: ['I9'],
      ...need(erasing, deadLetters),
      async run(stage) {
        const [id, other] = [await finish(stage, died), await finish(stage, died)]
        await letters(stage).remove([id], by)
        await letters(stage).discard([other], by)
        assert.deepEqual(await letters(stage).remove([id], by, { erase: true }), [true])
        assert.deepEqual(await letters(stage).remove([id], by, { erase: true }), [true], 'a second time')
        const [again, first, purge, ...more] = await letters(stage).audit({ jobId: id, limit: 100 })
        assert.deepEqual(
          [again?.before, first?.before],
          [
            { state: null, entries: 0 },
            { state: null, entries: 1 },
          ],
        )
        assert.deepEqual([purge?.action, purge?.before, purge?.after, more], ['purge', { erased: true }, null, []])
        const [kept] = await letters(stage).audit({ jobId: other, limit: 100 })
        assert.deepEqual([kept?.before.state, kept?.after?.state], ['dead_letter', 'discarded'])
      },
    },
    {
      name: 'jobs that are over are erased in whatever way they ended; those that may still run are not',
      guarantees: ['I1', 'I9'],
      ...need(erasing, deadLetters, cancellation),
      async run(stage) {
        const completed = await finish(stage, { kind: 'complete', result: JSON.stringify(SECRET), durationMs: 5 })
        const { id: cancelled } = await stage.put({ payload: JSON.stringify(SECRET) })
        await stage.engine.controls?.cancel(cancelled, by)
        const { id: waiting } = await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        assert.equal(lease.job.id, waiting)
        const unknown = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
        const desk = openDesk(stage)
        const ids = [completed, cancelled, waiting, unknown]
        const dry = await desk.erase({ ids }, by, { dryRun: true })
        assert.deepEqual([dry.done, dry.refused], [2, { unfinished: 1, unknown: 1 }])
        assert.match(await told(stage, completed), new RegExp(SECRET))
        const erased = await desk.erase({ ids }, by)
        assert.deepEqual([erased.done, erased.refused], [2, { unfinished: 1, unknown: 1 }])
        for (const id of [completed, cancelled]) assert.doesNotMatch(await told(stage, id), new RegExp(SECRET))
        assert.deepEqual(await letters(stage).remove([waiting, unknown], by, { erase: true }), [false, false])
        await stage.settle(consumer, lease, complete)
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      name: 'a completed job whose result another one will read is not erased before that one is over',
      guarantees: ['I1'],
      ...need(erasing, deadLetters, dependencies),
      async run(stage) {
        const first = await finish(stage, complete)
        const { id: second } = await stage.put({ after: { ids: [first], ifDead: 'wait' } })
        assert.deepEqual(await letters(stage).remove([first], by, { erase: true }), [false])
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        assert.equal(lease.job.id, second)
        await stage.settle(consumer, lease, complete)
        assert.deepEqual(await letters(stage).remove([first, second], by, { erase: true }), [true, true])
        await stage.expectCounts({})
      },
    },
  ],
}
