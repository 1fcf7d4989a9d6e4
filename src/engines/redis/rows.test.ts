import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readHistory } from './history.ts'
import { attemptOf, type Place, type Row, readStored, toFields, toRow, toView } from './rows.ts'

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV'

const fieldsOf = (fields: Readonly<Record<string, string>>) => new Map(Object.entries(fields))

const rowOf = (place: Place, fields: Readonly<Record<string, string>>): Row => ({
  queue: 'mail/send',
  type: 'mail:send',
  bullId: '7',
  place,
  fields: fieldsOf({ name: 'mail', data: '{"to":1}', ...fields }),
  lockUntilMs: null,
})

describe('a job read from its hash', () => {
  test('one that a plain producer stored has the defaults that it did not give', () => {
    const fields = fieldsOf({ name: 'mail', data: '[1]', opts: '{"delay":50}', timestamp: '1000', priority: '0' })
    assert.deepEqual(readStored('mail', '12', fields), {
      id: 'mail#12',
      type: 'mail',
      payload: '[1]',
      payloadVersion: 1,
      priority: 1,
      attempts: 3,
      createdAtMs: 1_000,
      runAtMs: 1_050,
      key: null,
      latestKey: null,
      tenant: null,
      options: null,
      after: null,
    })
  })

  test('one of ours has what stands beside BullMQ’s own options', () => {
    const mr = { v: 4, key: 'k', latest: { key: 'l' }, tenant: { orgId: 'o' }, options: { timeoutMs: 7 } }
    const fields = {
      name: 'mail',
      data: '1',
      opts: '{"attempts":9,"priority":2}',
      timestamp: '1000',
      priority: '2',
      mr: JSON.stringify(mr),
      mrRun: '3000',
      mrAfter: JSON.stringify({ ids: [ID], ifDead: 'run' }),
    }
    const job = readStored('mail', ID, fieldsOf(fields))
    assert.deepEqual([job?.id, job?.payloadVersion, job?.key, job?.latestKey], [ID, 4, 'k', 'l'])
    assert.deepEqual([job?.tenant, job?.options, job?.after?.ifDead], [{ orgId: 'o' }, { timeoutMs: 7 }, 'run'])
    assert.deepEqual([job?.attempts, job?.priority, job?.runAtMs], [9, 2, 3_000])
  })

  // X067
  test('a name other than the type is read, and wins over one in our own field', () => {
    const fields = { name: 'welcome', data: '1', mr: JSON.stringify({ options: { name: 'old', timeoutMs: 7 } }) }
    assert.deepEqual(readStored('mail', '1', fieldsOf(fields))?.options, { name: 'welcome', timeoutMs: 7 })
    assert.equal(readStored('welcome', '1', fieldsOf({ name: 'welcome', data: '1' }))?.options, null)
  })

  test('nonsense in any field is as good as absent, and never throws', () => {
    const names = ['opts', 'mr', 'mrRun', 'mrAfter', 'mrError', 'timestamp', 'priority', 'atm', 'stc', 'progress']
    const more = ['returnvalue', 'stacktrace', 'finishedOn', 'processedOn', 'mrReplays', 'mrEnded', 'mrAt', 'mrTook']
    const nonsense = [
      '',
      '{',
      'null',
      '[]',
      '"x"',
      '-1',
      '1e999',
      'NaN',
      '{"attempts":"many","latest":7,"after":{"ids":1}}',
    ]
    for (const place of ['wait', 'active', 'completed', 'failed', 'ended', 'unknown'] as const) {
      for (const text of nonsense) {
        const row = rowOf(place, Object.fromEntries([...names, ...more].map((name) => [name, text])))
        const view = toView(row)
        assert.ok(view !== null && view.attempts >= 1 && view.priority >= 1 && view.priority <= 10, `${place} ${text}`)
        for (const number of [view.attempt, view.replays, view.createdAtMs, view.runAtMs, view.updatedAtMs])
          assert.ok(Number.isFinite(number), `${place} ${text}`)
        assert.ok(readHistory(row, [text, 7, null, '{"event":"retried"}', '{"event":"nothing","at":1}']).length >= 1)
      }
    }
    assert.deepEqual(toFields('nothing').size, 0)
    assert.equal(toRow(0), null)
  })

  test('no attempts are as good as none given', () => {
    const fields = fieldsOf({ name: 'mail', data: '1', opts: '{"attempts":0}', priority: '2000000' })
    const job = readStored('mail', '1', fields)
    assert.deepEqual([job?.attempts, job?.priority], [3, 10])
  })

  test('a hash without a payload or a name is no job', () => {
    assert.equal(readStored('mail', '1', fieldsOf({ atm: '1' })), null)
    assert.equal(readStored('mail', '1', fieldsOf({ name: 'mail', atm: '1' })), null)
    assert.equal(toView({ ...rowOf('wait', {}), fields: fieldsOf({ data: '1' }) }), null)
  })

  test('a start counts while it runs, and those that other workers lost count too', () => {
    assert.equal(attemptOf(fieldsOf({ atm: '2', stc: '1' })), 4)
    assert.equal(toView(rowOf('active', { atm: '2', stc: '1' }))?.attempt, 4)
    assert.equal(toView(rowOf('wait', { atm: '2', stc: '1' }))?.attempt, 3)
  })

  test('what a worker of BullMQ’s own left of a failure is an error with its last stack', () => {
    const view = toView(
      rowOf('failed', { failedReason: 'no route', stacktrace: '["a","b"]', finishedOn: '9', atm: '1' }),
    )
    assert.deepEqual(view?.error, { name: 'Error', code: null, message: 'no route', stack: 'b' })
    assert.deepEqual([view?.state, view?.completedAtMs], ['dead_letter', 9])
  })
})

describe('a history', () => {
  const names = (row: Row, log: readonly unknown[] = []) => readHistory(row, log).map(({ name }) => name)
  const line = (event: string, at: number): string => JSON.stringify({ event, at, attempt: 1, worker: 'w' })

  test('the happy path is told by the hash alone', () => {
    const row = rowOf('completed', { timestamp: '1', processedOn: '2', finishedOn: '5', atm: '1', pb: 'w' })
    const [, started, completed] = readHistory(row, [])
    assert.deepEqual(names(row), ['enqueued', 'started', 'completed'])
    assert.deepEqual([started?.attempt, started?.worker, started?.atMs], [1, 'w', 2])
    assert.deepEqual([completed?.detail, completed?.jobId], [{ durationMs: 3 }, 'mail:send#7'])
  })

  test('a start that a reaper took over is told once', () => {
    const log = [line('started', 2), line('expired', 3)]
    assert.deepEqual(names(rowOf('active', { processedOn: '2' }), log), ['enqueued', 'started', 'expired'])
  })

  test('lines that others wrote into the log are theirs, and a death among BullMQ’s workers is told', () => {
    const log = ['half way', '{"level":"info"}']
    const row = rowOf('failed', { processedOn: '2', finishedOn: '5', atm: '1', failedReason: 'x' })
    assert.deepEqual(names(row, log), ['enqueued', 'started', 'failed', 'dead'])
    const told = [line('started', 2), line('failed', 5), line('dead', 5)]
    assert.deepEqual(names(row, told), ['enqueued', 'started', 'failed', 'dead'])
  })
})
