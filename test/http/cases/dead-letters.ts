import assert from 'node:assert/strict'
import type { DEAD_LETTER_ROUTES } from '../../../src/http/contract/dead-letters.ts'
import { until } from '../../cli/run.ts'
import type { Cases, Stage } from '../../fixtures/admin.ts'

async function ended(stage: Stage, id: string) {
  await until(async () => (await stage.ask('showOperation', { params: { id } })).status !== 'running')
  return stage.ask('showOperation', { params: { id } })
}

export const DEAD_LETTER_CASES: Cases<keyof typeof DEAD_LETTER_ROUTES> = {
  async listDeadLetters({ ask, bury }) {
    const ids: string[] = []
    for (let n = 0; n < 5; n += 1) ids.unshift(await bury('bill', n % 2 === 0 ? 'even' : 'odd'))
    const first = await ask('listDeadLetters', { query: { limit: 3, type: 'bill' } })
    const second = await ask('listDeadLetters', { query: { limit: 3, cursor: first.next ?? '' } })
    const found = [...first.items, ...second.items].map(({ job }) => job.id)
    assert.deepEqual([found.toSorted(), second.next], [ids.toSorted(), null])
    assert.deepEqual(Object.keys(first.items[0]?.job.error ?? {}), ['name', 'code', 'message'], 'no stack in a list')
    const { fingerprint = '' } = first.items.find(({ error }) => error.message === 'odd') ?? {}
    assert.equal((await ask('listDeadLetters', { query: { fingerprint } })).items.length, 2)
  },
  async groupDeadLetters(stage) {
    const { ask, mill, bury } = stage
    for (const text of ['no invoice 1', 'no invoice 2', 'other']) await bury('bill', text)
    const { groups, scanned, complete, selection } = await ask('groupDeadLetters', {})
    assert.deepEqual([scanned, complete, groups.map(({ count }) => count)], [3, true, [2, 1]])
    assert.equal(groups[0]?.error, 'Error: no invoice <n>')
    const later = await bury('bill', 'no invoice 3')
    const body = { selection: groups[0]?.selection ?? {} }
    const { operation } = await ask('replayDeadLetters', { body })
    assert.equal((await ended(stage, operation?.id ?? '')).progress.done, 2, 'what was shown is what is done')
    assert.equal((await mill.job(later))?.state, 'dead_letter')
    const rest = await ask('discardDeadLetters', { body: { selection, reason: 'old', dryRun: true } })
    assert.equal(rest.outcome?.done, 1)
  },
  async showDeadLetter({ ask, send, bury }) {
    const id = await bury('bill', 'boom', { n: 1, pin: '1234' })
    const letter = await ask('showDeadLetter', { params: { id } })
    assert.deepEqual(letter.job.payload, { n: 1, pin: '[redacted]' })
    assert.deepEqual([letter.checked, letter.redacted, letter.error.message], [true, true, 'boom'])
    assert.equal((await ask('showDeadLetter', { params: { id: await bury('mail') } })).checked, false)
    assert.equal((await send('showDeadLetter', { params: { id: 'none' } })).status, 404)
  },
  async replayDeadLetter({ ask, send, mill, bury }) {
    const id = await bury()
    const dry = await ask('replayDeadLetter', { params: { id }, body: { dryRun: true, payload: { n: 2 } } })
    assert.deepEqual([dry, (await mill.job(id))?.state], [{ id, replayed: false }, 'dead_letter'])
    const wrong = await send('replayDeadLetter', { params: { id }, body: { payload: { n: 'x' }, dryRun: true } })
    assert.deepEqual([wrong.status, wrong.body.code], [400, 'ERR_PAYLOAD_INVALID'])
    const hidden = await send('replayDeadLetter', { params: { id }, body: { payload: { n: 1, pin: '[redacted]' } } })
    assert.deepEqual([hidden.status, hidden.body.code], [400, 'ERR_REQUEST_INVALID'])
    const done = await ask('replayDeadLetter', {
      params: { id },
      body: { payload: { n: 2, pin: '9' }, reason: 'mended' },
    })
    assert.deepEqual([done.replayed, (await mill.job(id))?.payload], [true, '{"n":2,"pin":"9"}'])
    const { items } = await ask('listAudit', { query: { jobId: id } })
    assert.deepEqual([items[0]?.action, items[0]?.reason], ['replay', 'mended'])
    const edit = items[0]?.after?.edit
    assert.deepEqual(Reflect.get(Object(edit), 'changed'), [{ path: '/n', before: 1, after: 2 }, { path: '/pin' }])
    assert.equal('payload' in (items[0]?.after ?? {}), false)
  },
  async replayDeadLetters(stage) {
    const { ask, mill, bury } = stage
    const ids = [await bury(), await bury(), await bury('mail')]
    const selection = { type: 'bill' }
    const dry = await ask('replayDeadLetters', { body: { selection, dryRun: true } })
    assert.deepEqual([dry.operation, dry.outcome?.done, dry.outcome?.dryRun], [null, 2, true])
    const { operation } = await ask('replayDeadLetters', { body: { selection, reason: 'mended' } })
    const over = await ended(stage, operation?.id ?? '')
    assert.deepEqual([over.status, over.progress.done, over.who], ['done', 2, 'local'])
    assert.deepEqual(
      (await Promise.all(ids.map((id) => mill.job(id)))).map((job) => job?.state),
      ['queued', 'queued', 'dead_letter'],
    )
  },
  async discardDeadLetters(stage) {
    const { ask, send, mill, bury } = stage
    const id = await bury()
    const without = await send('discardDeadLetters', { body: { selection: { ids: [id] } } })
    assert.deepEqual([without.status, without.body.issues?.[0]?.path], [400, 'body.reason'])
    const { operation } = await ask('discardDeadLetters', { body: { selection: { ids: [id] }, reason: 'spam' } })
    assert.equal((await ended(stage, operation?.id ?? '')).progress.done, 1)
    assert.equal((await mill.job(id))?.state, 'discarded')
  },
  async undoDiscard(stage) {
    const { ask, send, mill, bury } = stage
    const id = await bury()
    assert.equal((await send('undoDiscard', { params: { id }, body: {} })).status, 409)
    const { operation } = await ask('discardDeadLetters', { body: { selection: {}, reason: 'spam' } })
    await ended(stage, operation?.id ?? '')
    assert.deepEqual(await ask('undoDiscard', { params: { id } }), { id, undone: true })
    assert.equal((await mill.job(id))?.state, 'dead_letter')
  },
  async purgeDeadLetters(stage) {
    const { ask, mill, bury } = stage
    const id = await bury()
    const { operation } = await ask('purgeDeadLetters', { body: { selection: { ids: [id] }, reason: 'gdpr' } })
    assert.equal((await ended(stage, operation?.id ?? '')).kind, 'purge')
    assert.equal(await mill.job(id), null)
  },
  async eraseJobs(stage) {
    const { ask, send, mill, bury } = stage
    const id = await bury('bill', 'no invoice of Ada', { n: 1, pin: '1234' })
    assert.equal((await send('eraseJobs', { body: { selection: { ids: [id] } } })).status, 400, 'without a reason')
    const body = { selection: { ids: [id, 'none'] }, reason: 'request 4711' }
    const dry = await ask('eraseJobs', { body: { ...body, dryRun: true } })
    assert.deepEqual([dry.outcome?.done, dry.outcome?.refused], [1, { unknown: 1 }])
    const { operation } = await ask('eraseJobs', { body })
    const over = await ended(stage, operation?.id ?? '')
    assert.deepEqual([over.kind, over.status, over.progress.done], ['erase', 'done', 1])
    assert.equal(await mill.job(id), null)
    const { items } = await ask('listAudit', { query: { jobId: id, action: 'erase' } })
    assert.deepEqual(items[0]?.before, { state: 'dead_letter', entries: 0 })
  },
  async listOperations(stage) {
    const { ask, bury } = stage
    await bury()
    const { operation } = await ask('replayDeadLetters', { body: { selection: {} } })
    await ended(stage, operation?.id ?? '')
    const { operations } = await ask('listOperations', {})
    assert.deepEqual(
      operations.map(({ id, status }) => [id, status]),
      [[operation?.id, 'done']],
    )
  },
  async showOperation({ send }) {
    assert.equal((await send('showOperation', { params: { id: 'none' } })).status, 404)
  },
  async stopOperation(stage) {
    const { ask, bury, mill } = stage
    for (let n = 0; n < 3; n += 1) await bury()
    // One letter in ten seconds: it is stopped long before the second.
    const { operation } = await ask('replayDeadLetters', { body: { selection: {}, rate: 0.1 } })
    const id = operation?.id ?? ''
    await until(async () => (await ask('showOperation', { params: { id } })).progress.done === 1)
    await ask('stopOperation', { params: { id } })
    const over = await ended(stage, id)
    assert.deepEqual([over.status, over.progress.done, typeof over.endedAtMs], ['stopped', 1, 'number'])
    assert.equal((await mill.counts()).bill?.dead, 2)
  },
  async listAudit({ ask, send, mill }) {
    for (const type of ['a', 'b', 'c']) await mill.pause(type, { who: 'ann', reason: type })
    const first = await ask('listAudit', { query: { limit: 2 } })
    const second = await ask('listAudit', { query: { limit: 2, cursor: first.next ?? '' } })
    assert.deepEqual(
      [...first.items, ...second.items].map(({ type }) => type),
      ['c', 'b', 'a'],
    )
    assert.equal(second.next, null)
    assert.equal((await send('listAudit', { query: { action: 'dance' } })).status, 400)
    assert.deepEqual((await ask('listAudit', { query: { who: 'bob' } })).items, [])
  },
}
