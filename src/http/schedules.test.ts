import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stageOn } from '../../test/fixtures/admin.ts'
import { defineJob } from '../job/definition.ts'

test('a schedule that code declares is not changed, and is removed until that code starts again', async (t) => {
  const { mill, ask, send } = await stageOn(t, 'memory:')
  const report = defineJob({ type: 'report', schedule: '0 3 * * *', run: () => null })
  await mill.work([report])
  const { schedules } = await ask('listSchedules', {})
  assert.deepEqual([schedules[0]?.name, schedules[0]?.declared], ['report', true])
  const { status, body } = await send('changeSchedule', { params: { name: 'report' }, body: { cron: '0 4 * * *' } })
  assert.deepEqual(
    [status, body.message],
    [400, `code declares the schedule 'report'; change it there, or pause it here`],
  )
  assert.equal((await mill.schedules.find('report'))?.cron, '0 3 * * *')
  await ask('removeSchedule', { params: { name: 'report' } })
  assert.deepEqual(await mill.schedules.list(), [])
})

test('an error about a payload does not quote a secret that was kept', async (t) => {
  const { mill, send } = await stageOn(t, 'memory:')
  await mill.schedules.upsert('nightly', { type: 'mail', cron: '0 3 * * *', payload: { token: 'hush' } })
  const moved = { payload: { token: '[redacted]', copy: '[redacted]' } }
  const { status, body } = await send('changeSchedule', { params: { name: 'nightly' }, body: moved })
  assert.deepEqual([status, body.issues?.map(({ path }) => path)], [400, ['body.payload.copy']])
  assert.doesNotMatch(JSON.stringify(body), /hush/)
  assert.deepEqual((await mill.schedules.find('nightly'))?.payload, { token: 'hush' })
})
