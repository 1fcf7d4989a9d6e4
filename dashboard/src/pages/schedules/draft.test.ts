import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bodyOf, changesOf, draftOf, issuesBy, localText, msOf, timesOf } from './draft.ts'

const NEW = draftOf(null)

test('only what was edited is sent', () => {
  assert.deepEqual(changesOf(NEW, NEW), {})
  const edited = { ...NEW, cron: '0 4 * * *', payload: '{"n":1}', limit: '3', start: '2030-01-31T09:00' }
  assert.deepEqual(changesOf(NEW, edited), {
    ...{ cron: '0 4 * * *', payload: { n: 1 }, limit: 3 },
    startMs: Date.parse('2030-01-31T09:00'),
  })
  assert.deepEqual(changesOf(edited, { ...edited, limit: '', start: '' }), { limit: null, startMs: null })
})

test('a time is shown in the zone of the browser and read back', () => {
  const ms = Date.parse('2030-01-31T09:00:07')
  assert.equal(localText(ms), '2030-01-31T09:00:07')
  assert.equal(msOf(localText(ms)), ms)
  assert.deepEqual([localText(null), msOf('')], ['', null])
})

test('a new one is sent whole, and its preview without what the server would refuse', () => {
  const body = bodyOf({ ...NEW, name: ' nightly ', type: 'report' })
  assert.deepEqual([body.name, body.limit, body.startMs, body.missed], ['nightly', null, null, 'one'])
  const times = timesOf({ ...NEW, limit: '0', start: '1969-01-01T00:00', end: '2030-01-01T00:00' }, undefined)
  assert.deepEqual(times, { cron: '0 3 * * *', tz: 'UTC', endMs: Date.parse('2030-01-01T00:00') })
})

test('issues stand by the fields that they concern', () => {
  const issues = [
    { path: 'body.cron', message: 'no' },
    { path: 'body.payload.items.0', message: 'hidden' },
  ]
  const problem = { status: 400, code: 'ERR_REQUEST_INVALID', message: 'no', issues }
  const of = issuesBy(problem, [{ path: 'query.tz', message: 'Mars' }])
  assert.deepEqual(of('cron'), [{ field: 'cron', path: '', message: 'no' }])
  assert.deepEqual(of('payload'), [{ field: 'payload', path: 'items.0', message: 'hidden' }])
  assert.deepEqual([of('tz').length, issuesBy(null, [{ path: 'query.tz', message: 'Mars' }])('tz').length], [0, 1])
  const unfit = issuesBy({ ...problem, code: 'ERR_PAYLOAD_INVALID', message: 'n is no number', issues: [] }, [])
  assert.equal(unfit('payload')[0]?.message, 'n is no number')
})
