import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ann, idsOf, rejects, start } from '../../test/fixtures/desk.ts'

describe('discarding and purging', () => {
  // X013
  test('take a reason and a name', async (t) => {
    const { desk, bury } = await start(t)
    const ids = [await bury('bill')]
    for (const act of [desk.discard.bind(desk), desk.purge.bind(desk)]) {
      await assert.rejects(act({ ids }, { who: 'ann' }), rejects('ERR_OPTION_INVALID', /'reason' is missing/))
      await assert.rejects(
        act({ ids }, { who: 'ann', reason: ' ' }),
        rejects('ERR_OPTION_INVALID', /'reason' is missing/),
      )
      await assert.rejects(act({ ids }, { who: '', reason: 'x' }), rejects('ERR_OPTION_INVALID', /'who' is empty/))
    }
    assert.equal((await desk.list()).length, 1)
  })

  test('a discard can be undone, and leaves the letter as it was', async (t) => {
    const { clock, mill, desk, bury } = await start(t)
    const id = await bury('bill')
    const { updatedAtMs: _, ...before } = (await mill.job(id)) ?? assert.fail()
    assert.equal((await desk.discard({ ids: [id] }, ann, { dryRun: true })).done, 1)
    assert.equal((await desk.discard({}, ann)).done, 1)
    assert.deepEqual(await desk.list(), [])
    await assert.rejects(desk.replay(id, ann), rejects('ERR_STATE_TRANSITION', /undo that first/))
    await clock.advance(60_000)
    await desk.undo(id, { who: 'bob' })
    const { updatedAtMs: __, ...after } = (await mill.job(id)) ?? assert.fail()
    assert.deepEqual(after, before)
    await assert.rejects(desk.undo(id, ann), rejects('ERR_STATE_TRANSITION', /not discarded/))
    assert.deepEqual(
      (await desk.audit()).map(({ action, who, reason }) => [action, who, reason]),
      [
        ['undo', 'bob', 'undo'],
        ['discard', 'ann', ann.reason],
      ],
    )
  })

  // A173 B203 X072
  test('a purge deletes what matches, returns how many, and is audited', async (t) => {
    const { mill, desk, bury } = await start(t)
    const bills = [await bury('bill'), await bury('bill'), await bury('bill')]
    const rest = [await bury('erase'), await bury('erase')]
    await desk.discard({ ids: bills.slice(0, 1) }, ann)
    assert.equal((await desk.purge({ type: 'bill' }, ann, { dryRun: true })).done, 2)
    assert.equal((await desk.purge({ ids: bills }, ann)).done, 3)
    for (const id of bills) assert.equal(await mill.job(id), null)
    assert.deepEqual(idsOf(await desk.list()).sort(), [...rest].sort())
    const entries = await desk.audit({ action: 'purge' })
    assert.deepEqual(entries.map(({ jobId, after }) => [jobId, after]).sort(), bills.map((id) => [id, null]).sort())
  })

  // X013
  test('a critical type is purged only when resolved or forced', async (t) => {
    const { desk, bury } = await start(t, { critical: ['bill'] })
    const [declared, listed, resolved] = [await bury('erase'), await bury('bill'), await bury('erase')]
    const refused = await desk.purge({}, ann)
    assert.deepEqual([refused.done, refused.refused], [0, { critical: 3 }])
    await desk.discard({ ids: [resolved] }, ann)
    assert.equal((await desk.purge({ ids: [resolved] }, ann)).done, 1)
    assert.equal((await desk.purge({ ids: [declared, listed] }, ann, { force: true })).done, 2)
  })
})
