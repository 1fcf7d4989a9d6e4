import assert from 'node:assert/strict'
import type { SCHEDULE_ROUTES } from '../../../src/http/contract/schedules.ts'
import { systemClock } from '../../../src/time/clock.ts'
import type { Cases, Problematic } from '../../fixtures/admin.ts'
import { die } from '../../fixtures/desk.ts'

const nightly = { type: 'bill', cron: '0 3 * * *', payload: { n: 1 } }
const DAY_MS = 86_400_000

const pathsOf = ({ issues = [] }: Problematic) => issues.map(({ path }) => path)

export const SCHEDULE_CASES: Cases<keyof typeof SCHEDULE_ROUTES> = {
  async listSchedules({ ask, mill }) {
    await mill.schedules.upsert('nightly', nightly)
    const { schedules } = await ask('listSchedules', {})
    const [one] = schedules
    assert.deepEqual([one?.name, one?.type, one?.cron, one?.tz], ['nightly', 'bill', '0 3 * * *', 'UTC'])
    assert.deepEqual([one?.paused, one?.overdue, typeof one?.nextAtMs], [false, false, 'number'])
  },
  async previewSchedule({ ask, send, mill }) {
    await mill.schedules.upsert('nightly', nightly)
    const { nextAtMs } = await ask('previewSchedule', { params: { name: 'nightly' } })
    assert.deepEqual([nextAtMs.length, (nextAtMs[1] ?? 0) - (nextAtMs[0] ?? 0)], [10, 86_400_000])
    const none = await send('previewSchedule', { params: { name: '* * * * *' } })
    assert.deepEqual([none.status, none.body.code], [404, 'ERR_SCHEDULE_UNKNOWN'])
  },
  async pauseSchedule({ ask, send, mill }) {
    await mill.schedules.upsert('nightly', nightly)
    const paused = await ask('pauseSchedule', { params: { name: 'nightly' }, body: { reason: 'holidays' } })
    assert.deepEqual([paused.paused, paused.nextAtMs], [true, null])
    const { items } = await ask('listAudit', { query: { action: 'schedule-pause' } })
    assert.deepEqual(
      items.map(({ who, reason, subject }) => [who, reason, subject]),
      [['local', 'holidays', 'nightly']],
    )
    assert.equal((await send('pauseSchedule', { params: { name: 'none' }, body: {} })).status, 404)
  },
  async resumeSchedule({ ask, mill }) {
    await mill.schedules.upsert('nightly', nightly)
    await mill.schedules.pause('nightly')
    const resumed = await ask('resumeSchedule', { params: { name: 'nightly' } })
    assert.deepEqual([resumed.paused, typeof resumed.nextAtMs], [false, 'number'])
    assert.equal((await ask('listAudit', { query: { action: 'schedule-resume' } })).items.length, 1)
  },
  async runSchedule({ ask, mill }) {
    await mill.schedules.upsert('nightly', nightly)
    const { id, status } = await ask('runSchedule', { params: { name: 'nightly' } })
    assert.equal(status, 'enqueued')
    assert.equal((await mill.job(id))?.type, 'bill')
    const { items } = await ask('listAudit', { query: { jobId: id } })
    assert.deepEqual(
      items.map(({ action, subject }) => [action, subject]),
      [['schedule-run', 'nightly']],
    )
  },
  async showSchedule({ ask, send, mill }) {
    await mill.schedules.upsert('nightly', { ...nightly, payload: { n: 1, pin: '1234' }, options: { attempts: 1 } })
    const shown = await ask('showSchedule', { params: { name: 'nightly' } })
    assert.deepEqual([shown.payload, shown.redacted, shown.checked], [{ n: 1, pin: '[redacted]' }, true, true])
    assert.deepEqual([shown.options, shown.declared], [{ attempts: 1 }, false])
    assert.equal((await send('showSchedule', { params: { name: 'none' } })).status, 404)
  },
  async listScheduleRuns({ ask, mill }) {
    const query = { name: 'nightly' }
    assert.deepEqual(await ask('listScheduleRuns', { query }), { past: [], outcomesKnown: true })
    await mill.schedules.upsert('nightly', { ...nightly, options: { attempts: 1 } })
    const { id: dead } = await mill.schedules.runNow('nightly')
    await die(mill, 'bill', 'boom')
    const { id: waiting } = await mill.schedules.runNow('nightly')
    const shown = await ask('listScheduleRuns', { query })
    assert.deepEqual(
      shown.past.map(({ what, jobId, state, count }) => [what, jobId, state, count]),
      [
        ['run-now', dead, 'dead_letter', 1],
        ['run-now', waiting, 'queued', 1],
      ],
    )
  },
  async previewCron({ ask, mill }) {
    const startMs = systemClock.nowMs() + DAY_MS
    const query = { cron: '0 3 * * *', tz: 'Europe/Berlin', startMs, limit: 2 }
    const { nextAtMs, issues } = await ask('previewCron', { query })
    assert.deepEqual([nextAtMs.length, issues], [2, []])
    assert.ok((nextAtMs[0] ?? 0) >= startMs)
    await mill.schedules.upsert('often', { ...nightly, cron: '* * * * *', limit: 3 })
    assert.equal(
      (await ask('previewCron', { query: { cron: '* * * * *', limit: 3, name: 'often' } })).nextAtMs.length,
      3,
    )
    const wrong = await ask('previewCron', { query: { cron: '61 * * * *', tz: 'Mars', startMs, endMs: 1 } })
    assert.deepEqual(pathsOf(wrong), ['query.cron', 'query.tz', 'query.endMs'])
    assert.match(wrong.issues[1]?.message ?? '', /'Mars' is no time zone that this Node knows; give one such as/)
  },
  async addSchedule({ ask, send, mill }) {
    const body = { name: 'nightly', ...nightly, tz: 'Europe/Berlin', limit: 5, options: { timeout: '2s' } } as const
    const added = await ask('addSchedule', { body: { ...body, reason: 'reports' } })
    assert.deepEqual([added.tz, added.limit, added.overlap, added.declared], ['Europe/Berlin', 5, 'skip', false])
    const stored = await mill.schedules.find('nightly')
    assert.deepEqual([stored?.payload, stored?.options], [{ n: 1 }, { timeout: 2_000 }])
    assert.equal(stored?.defaults?.attempts, 3, 'from the definition of the type')
    const { items } = await ask('listAudit', { query: { action: 'schedule-change' } })
    assert.deepEqual(
      items.map(({ reason, subject, type, after }) => [reason, subject, type, after?.cron]),
      [['reports', 'nightly', 'bill', '0 3 * * *']],
    )
    const taken = await send('addSchedule', { body })
    assert.deepEqual([taken.status, pathsOf(taken.body)], [400, ['body.name']])
    const times = { cron: '* *', tz: 'Mars', startMs: 2, endMs: 1, missed: 'all', overlap: 'skip' }
    const wrong = await send('addSchedule', { body: { ...body, ...times, name: ' ', type: 'a b' } })
    const fields = ['name', 'type', 'cron', 'tz', 'endMs', 'overlap']
    assert.deepEqual([wrong.status, pathsOf(wrong.body)], [400, fields.map((field) => `body.${field}`)])
    const unfit = await send('addSchedule', { body: { ...body, name: 'other', payload: { n: 'one' } } })
    assert.deepEqual([unfit.status, unfit.body.code], [400, 'ERR_PAYLOAD_INVALID'])
    const hidden = await send('addSchedule', { body: { ...body, name: 'other', payload: { n: 1, pin: '[redacted]' } } })
    assert.deepEqual([hidden.status, pathsOf(hidden.body)], [400, ['body.payload.pin']])
    assert.equal((await mill.schedules.list()).length, 1)
  },
  async changeSchedule({ ask, send, mill }) {
    const bounds = { start: new Date(0), limit: 9, options: { priority: 2 } }
    await mill.schedules.upsert('nightly', { ...nightly, ...bounds, payload: { n: 1, pin: '1234' } })
    const params = { name: 'nightly' }
    const changed = await ask('changeSchedule', { params, body: { cron: '0 4 * * *', startMs: null, reason: 'later' } })
    assert.deepEqual([changed.cron, changed.startMs, changed.limit], ['0 4 * * *', null, 9])
    await ask('changeSchedule', { params, body: { payload: { n: 2, pin: '[redacted]' } } })
    const stored = await mill.schedules.find('nightly')
    assert.deepEqual([stored?.payload, stored?.options], [{ n: 2, pin: '1234' }, { priority: 2 }])
    const { items } = await ask('listAudit', { query: { action: 'schedule-change' } })
    assert.deepEqual(
      items.map(({ reason, before, after }) => [reason, before.cron, after?.cron, Object(after?.edit).changed]),
      [
        ['schedule-change', '0 4 * * *', '0 4 * * *', [{ path: '/n', before: 1, after: 2 }]],
        ['later', '0 3 * * *', '0 4 * * *', undefined],
      ],
    )
    assert.doesNotMatch(JSON.stringify(items), /1234/)
    const wrong = await send('changeSchedule', { params, body: { cron: '* * * * 9', endMs: -1 } })
    assert.deepEqual([wrong.status, pathsOf(wrong.body)], [400, ['body.endMs']])
    const unfit = await send('changeSchedule', { params, body: { payload: { n: '1234', pin: '[redacted]' } } })
    assert.deepEqual([unfit.status, unfit.body.code], [400, 'ERR_PAYLOAD_INVALID'])
    assert.equal((await send('changeSchedule', { params: { name: 'none' }, body: {} })).status, 404)
    assert.deepEqual((await mill.schedules.find('nightly'))?.payload, { n: 2, pin: '1234' })
  },
  async removeSchedule({ ask, send, mill }) {
    await mill.schedules.upsert('nightly', nightly)
    const params = { name: 'nightly' }
    assert.deepEqual(await ask('removeSchedule', { params, body: { reason: 'moved' } }), {
      name: 'nightly',
      removed: true,
    })
    assert.equal(await mill.schedules.find('nightly'), null)
    const { items } = await ask('listAudit', { query: { action: 'schedule-remove' } })
    assert.deepEqual(
      items.map(({ reason, subject, before }) => [reason, subject, before.cron]),
      [['moved', 'nightly', '0 3 * * *']],
    )
    assert.equal((await send('removeSchedule', { params, body: {} })).status, 404)
  },
}
