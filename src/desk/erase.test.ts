import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ann, rejects, start } from '../../test/fixtures/desk.ts'
import { openDesk } from './desk.ts'

test('erasing needs a reason, and leaves dead letters of critical types alone without force', async (t) => {
  const { desk, bury, mill } = await start(t)
  const [plain, critical] = [await bury('bill'), await bury('erase')]
  await assert.rejects(desk.erase({}, { who: 'ann' }), rejects('ERR_OPTION_INVALID', /say why this is erased/))
  const acted: string[] = []
  mill.events.on('desk.acted', ({ action, id }) => void acted.push(`${action} ${id}`))
  const { done, refused } = await desk.erase({}, ann)
  assert.deepEqual([done, refused, acted], [1, { critical: 1 }, [`erase ${plain}`]])
  assert.equal((await desk.erase({ ids: [critical] }, ann)).refused.critical, 1)
  assert.equal((await desk.erase({ ids: [critical] }, ann, { force: true })).done, 1)
  assert.deepEqual([await mill.job(plain), await mill.job(critical)], [null, null])
  const unknown = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
  assert.deepEqual((await desk.erase({ ids: [unknown] }, ann, { force: true })).refused, { unknown: 1 })
})

test('an engine that cannot look up a job says that it cannot erase one, and what to do', async (t) => {
  const { mill, bury } = await start(t)
  const id = await bury('bill')
  const { inspector: _, ...blind } = { ...mill.engine, name: 'blind', deadLetters: mill.engine.deadLetters }
  const desk = openDesk({ engine: { name: 'blind', ...(blind.deadLetters && { deadLetters: blind.deadLetters }) } })
  await assert.rejects(desk.erase({ ids: [id] }, ann), rejects('ERR_UNSUPPORTED', /retention of their topics/))
  assert.equal((await mill.job(id))?.state, 'dead_letter')
})
