import assert from 'node:assert/strict'
import { openDesk } from '../../../src/desk/desk.ts'
import type {
  Actor,
  DeadLetterFilter,
  DeadLetters,
  LetterCause,
  LetterCauses,
} from '../../../src/engine/dead-letters.ts'
import type { CaseFile } from '../../case.ts'
import { deadLetters, inspection, keys, looking, need } from '../../needs.ts'
import { complete, dead, type Stage } from '../../stage.ts'

const by: Actor = { who: 'suite', reason: 'test' }

function letters(stage: Stage): DeadLetters {
  assert.ok(stage.engine.deadLetters, 'the engine declares dead letters and has none')
  return stage.engine.deadLetters
}

const note = { before: 'hash 1', after: 'hash 2', changed: [{ path: '', before: [] }], unnamed: 0 }

async function bury(stage: Stage, fields: Parameters<Stage['put']>[0] = {}): Promise<string> {
  const { id } = await stage.put(fields)
  const consumer = await stage.consume()
  await stage.settle(consumer, await stage.one(consumer), dead)
  await consumer.close()
  return id
}

const listed = async (stage: Stage, filter: Partial<Parameters<DeadLetters['list']>[0]> = {}) =>
  (await letters(stage).list({ limit: 100, ...filter })).map(({ job }) => job.id)

/** How many letters of one cause, counted page by page, and the newest of them. */
async function counted(stage: Stage, filter: DeadLetterFilter): Promise<[count: number, newestId: string | undefined]> {
  const found: LetterCause[] = []
  let after: LetterCauses['last'] = null
  do {
    const page: LetterCauses | undefined = await letters(stage).causes?.(after ? { ...filter, after } : filter)
    found.push(...(page?.causes ?? []))
    after = page?.last ?? null
  } while (after !== null)
  return [found.reduce((sum, { count }) => sum + count, 0), found[0]?.newestId]
}

const actions = async (stage: Stage) => (await letters(stage).audit({ limit: 100 })).map(({ action }) => action)

export const deskActs: CaseFile = {
  level: 'port',
  concept: 'The dead-letter desk',
  cases: [
    {
      name: 'dead letters are listed page by page, and by when they died',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const died: { readonly id: string; readonly atMs: number }[] = []
        for (let count = 0; count < 5; count += 1) {
          died.unshift({ id: await bury(stage), atMs: stage.nowMs })
          await stage.harness.advance(count === 2 ? 0 : 10)
        }
        const pages: string[] = []
        let after: { readonly completedAtMs: number; readonly id: string } | undefined
        for (;;) {
          const page = await letters(stage).list({ limit: 2, ...(after && { after }) })
          const last = page.at(-1)?.job
          if (last === undefined) break
          pages.push(...page.map(({ job }) => job.id))
          after = { completedAtMs: last.completedAtMs ?? 0, id: last.id }
        }
        assert.deepEqual([...pages].sort(), died.map(({ id }) => id).sort(), 'a page was skipped or repeated')
        assert.deepEqual(pages, await listed(stage))
        const newestMs = (await letters(stage).list({ limit: 1 }))[0]?.job.completedAtMs ?? 0
        assert.deepEqual(await listed(stage, { sinceMs: newestMs }), pages.slice(0, 1))
        assert.deepEqual(await listed(stage, { beforeMs: newestMs }), pages.slice(1))
        const wanted = { type: stage.type, limit: 2 }
        if (letters(stage).causes === undefined) return
        assert.deepEqual(await counted(stage, wanted), [5, pages[0]])
        assert.deepEqual(await counted(stage, { ...wanted, beforeMs: newestMs }), [4, pages[1]])
        assert.deepEqual(await counted(stage, { ...wanted, sinceMs: newestMs }), [1, pages[0]])
        assert.deepEqual(await counted(stage, { ...wanted, type: 'none' }), [0, undefined])
      },
    },
    {
      name: 'the desk acts on what it has counted: letters that die later are left alone',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const desk = openDesk(stage)
        const shown = [await bury(stage), await bury(stage), await bury(stage)]
        await stage.harness.advance(10)
        const { groups, seen, complete: isComplete, selection } = await desk.causes()
        assert.deepEqual([groups.map(({ count }) => count), seen, isComplete], [[3], 3, true])
        const later = await bury(stage)
        const dry = await desk.replayAll(groups[0]?.selection ?? {}, by, { dryRun: true })
        assert.deepEqual([dry.done, (await desk.replayAll(selection, by, { dryRun: true })).done], [3, 3])
        assert.equal((await desk.discard(dry.selection, by)).done, 3)
        assert.deepEqual(await listed(stage), [later])
        for (const id of shown) assert.equal((await letters(stage).list({ ids: [id] }))[0]?.job.state, 'discarded')
      },
    },
    {
      name: 'an act that is not the desk’s is noted with what it was about, between the others',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const id = await bury(stage)
        await letters(stage).discard([id], by)
        const note = { who: 'ann', reason: 'why "so"', jobId: null, type: null, subject: null, before: {}, after: null }
        await letters(stage).note({ ...note, action: 'cancel', jobId: id, type: stage.type, before: { tags: [] } })
        await stage.harness.advance(10)
        const after = { cron: '* * * * *', of: [{ n: 1 }] }
        await letters(stage).note({ ...note, action: 'schedule-change', subject: 'nightly', after })
        await letters(stage).undiscard([id], by)
        assert.deepEqual(await actions(stage), ['undo', 'schedule-change', 'cancel', 'discard'])
        const [, changed, cancelled] = await letters(stage).audit({ limit: 100 })
        const { seq = 0, atMs = 0, ...told } = changed ?? {}
        assert.ok(seq > (cancelled?.seq ?? 0) && atMs >= (cancelled?.atMs ?? 0) + 10)
        const noted = { ...note, jobId: '', type: '', action: 'schedule-change', subject: 'nightly', after }
        assert.deepEqual(told, noted)
        const ofJob = await letters(stage).audit({ limit: 10, jobId: id })
        assert.deepEqual(
          ofJob.map(({ action, type, subject }) => [action, type, subject]),
          ['undo', 'cancel', 'discard'].map((action) => [action, stage.type, null]),
        )
        assert.deepEqual(ofJob[1]?.before, { tags: [] })
        const [found] = await letters(stage).audit({ limit: 10, action: 'cancel' })
        assert.deepEqual(found, cancelled)
      },
    },
    {
      // X010 X012 X034
      name: 'a replay counts, and takes an edited payload in place of the stored one',
      guarantees: ['I9'],
      ...need(deadLetters, looking),
      async run(stage) {
        const id = await bury(stage, { payload: '"old"', tenant: { orgId: 'org' } })
        const edit = { payload: '"new"', payloadVersion: 3, replaces: '"old"', note }
        assert.deepEqual(await letters(stage).requeue([id], by, { ...edit, replaces: '"other"' }), [false])
        assert.deepEqual(await letters(stage).requeue([id], by, edit), [true])
        const consumer = await stage.consume()
        const { job } = await stage.one(consumer)
        assert.deepEqual([job.id, job.payload, job.payloadVersion, job.tenant], [id, '"new"', 3, { orgId: 'org' }])
        assert.equal((await stage.view(id)).replays, 1)
        const [entry, ...more] = await letters(stage).audit({ limit: 10 })
        assert.deepEqual([entry?.before.edit, entry?.after?.edit, more], [undefined, note, []])
        assert.doesNotMatch(JSON.stringify(entry), /old|new/, 'the audit has a payload')
      },
    },
    {
      // X010
      name: 'a discarded letter is neither listed, counted nor put back, and is found until it is removed',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const id = await bury(stage)
        assert.deepEqual(await letters(stage).discard([id], by), [true])
        assert.deepEqual(await letters(stage).discard([id], by), [false], 'a second time')
        assert.deepEqual(await listed(stage), [])
        await stage.expectCounts({})
        assert.deepEqual(await letters(stage).requeue([id], by), [false])
        assert.equal((await letters(stage).list({ ids: [id] }))[0]?.job.state, 'discarded')
        await stage.none(await stage.consume(), 'a discarded job was handed out')
      },
    },
    {
      name: 'an undone discard is the dead letter that it was, and can be put back',
      guarantees: ['I9'],
      ...need(deadLetters, keys),
      async run(stage) {
        const id = await bury(stage, { key: 'k' })
        const { updatedAtMs: _, ...before } =
          (await letters(stage).list({ ids: [id] }))[0]?.job ?? assert.fail('not found')
        await stage.harness.advance(50)
        assert.deepEqual(await letters(stage).undiscard([id], by), [false], 'it is not discarded yet')
        assert.deepEqual(await letters(stage).discard([id], by), [true])
        await stage.harness.advance(50)
        assert.deepEqual(await letters(stage).undiscard([id], by), [true])
        assert.deepEqual(await letters(stage).undiscard([id], by), [false], 'a second time')
        const { updatedAtMs: __, ...after } =
          (await letters(stage).list({ ids: [id] }))[0]?.job ?? assert.fail('not found')
        assert.deepEqual(after, before)
        await stage.expectCounts({ dead: 1 })
        assert.deepEqual(await letters(stage).requeue([id], by), [true])
        assert.deepEqual((await stage.put({ key: 'k' })).receipt, { id, status: 'duplicate' })
      },
    },
    {
      // A173 B203 X010 X072
      name: 'removing deletes dead and discarded letters and nothing else',
      guarantees: ['I1', 'I9'],
      ...need(deadLetters, inspection),
      async run(stage) {
        const [gone, discarded, kept] = [await bury(stage), await bury(stage), await bury(stage)]
        await letters(stage).discard([discarded], by)
        const done = await stage.put()
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), complete)
        const waiting = await stage.put()
        const ids = [gone, discarded, done.id, waiting.id, '01ARZ3NDEKTSV4RRFFQ69G5FAV']
        assert.deepEqual(await letters(stage).remove(ids, by), [true, true, false, false, false])
        assert.ok(!(await letters(stage).remove(ids, by)).includes(true), 'a second time')
        for (const id of [gone, discarded]) {
          assert.deepEqual(await stage.engine.inspector?.find([id]), [null])
          assert.deepEqual(await stage.engine.inspector?.history(id), [])
        }
        assert.deepEqual(await listed(stage), [kept])
        await stage.expectCounts({ ready: 1, completed: 1, dead: 1 })
      },
    },
    {
      name: 'an act on several letters answers for each in order, and acts once on an id that is given twice',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const [first, second] = [await bury(stage), await bury(stage)]
        const { id: waiting } = await stage.put()
        const ids = [second, waiting, first, second]
        const once = [true, false, true, false]
        assert.deepEqual(await letters(stage).discard(ids, by), once)
        const shown = (await letters(stage).list({ ids })).map(({ job }) => job.id)
        assert.deepEqual([...new Set(shown)], [second, first], 'letters by ids, in the order of the ids')
        assert.deepEqual(await letters(stage).undiscard(ids, by), once)
        assert.deepEqual(await letters(stage).requeue(ids, by), once)
        assert.deepEqual(await actions(stage), ['replay', 'replay', 'undo', 'undo', 'discard', 'discard'])
        assert.deepEqual(await letters(stage).remove(ids, by), [false, false, false, false])
        await stage.expectCounts({ ready: 3 })
        assert.deepEqual(await letters(stage).requeue([], by), [])
      },
    },
    {
      // X013
      name: 'every act is audited with who, when, why, before and after, also when its job is gone',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const id = await bury(stage)
        await letters(stage).discard([id], { who: 'ann', reason: 'sent by hand' })
        await letters(stage).undiscard([id], by)
        await letters(stage).requeue([id], by)
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), dead)
        await letters(stage).remove([id], by)
        assert.deepEqual(await actions(stage), ['purge', 'replay', 'undo', 'discard'])
        const [first, ...more] = await letters(stage).audit({ who: 'ann', limit: 10 })
        assert.deepEqual(more, [])
        assert.partialDeepStrictEqual(first, { who: 'ann', reason: 'sent by hand', jobId: id, type: stage.type })
        assert.deepEqual([first?.before.state, first?.after?.state], ['dead_letter', 'discarded'])
        assert.ok(Math.abs((first?.atMs ?? 0) - stage.nowMs) < 60_000)
        const [purge] = await letters(stage).audit({ action: 'purge', jobId: id, limit: 10 })
        assert.deepEqual([purge?.before.replays, purge?.before.attempt, purge?.after], [1, 1, null])
        const seqs = (await letters(stage).audit({ limit: 2, before: purge?.seq ?? 0 })).map(({ action }) => action)
        assert.deepEqual(seqs, ['replay', 'undo'])
      },
    },
    {
      name: 'what was refused at the desk leaves no audit entry',
      guarantees: ['I9'],
      ...need(deadLetters),
      async run(stage) {
        const { id } = await stage.put()
        assert.deepEqual(
          [
            await letters(stage).requeue([id], by),
            await letters(stage).discard([id], by),
            await letters(stage).undiscard([id], by),
            await letters(stage).remove([id], by),
            await letters(stage).list({ ids: [id] }),
          ],
          [[false], [false], [false], [false], []],
        )
        assert.deepEqual(await actions(stage), [])
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      // X035
      name: 'of several who act on one letter at once, through two views, one succeeds',
      guarantees: ['I9', 'I4'],
      ...need(deadLetters),
      async run(stage) {
        const id = await bury(stage)
        const rival = (await stage.other()).deadLetters ?? assert.fail('the other view has no dead letters')
        const answers = await Promise.all([
          letters(stage).requeue([id], by),
          rival.requeue([id], by),
          letters(stage).requeue([id], by),
          rival.requeue([id], by),
        ])
        assert.equal(answers.flat().filter((isDone) => isDone).length, 1)
        assert.deepEqual(await actions(stage), ['replay'])
        const consumer = await stage.consume()
        await stage.settle(consumer, await stage.one(consumer), dead)
        await Promise.all([letters(stage).requeue([id], by), rival.discard([id], by)])
        assert.equal((await actions(stage)).length, 2, 'a letter was both replayed and discarded')
      },
    },
  ],
}
