import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, test } from 'node:test'
import { causesBothWays } from '../../../test/fixtures/causes-both-ways.ts'
import { claimGreetings } from '../../../test/fixtures/claim.ts'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'

const SETTINGS = { clock: systemClock, migrate: true }

const files = tempFiles()
let file: string
beforeEach(() => {
  file = files.next()
})

describe('rows of other programs', () => {
  const insert = (handle: DatabaseSync, id: string, columns: Record<string, string | number> = {}): void => {
    const now = new Date(systemClock.nowMs() - 1_000).toISOString()
    const row = { id, type: 'greet', scheduled_at: now, payload: '{}', created_at: now, updated_at: now, ...columns }
    const names = Object.keys(row)
    handle
      .prepare(`INSERT INTO job_queue (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`)
      .run(...Object.values(row))
  }

  test('a plain INSERT is claimed, also in the formats of other languages', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const handle = new DatabaseSync(file)
    insert(handle, 'iso')
    insert(handle, 'sqlite-text', { scheduled_at: '2025-12-31 23:59:59' })
    insert(handle, 'python', { scheduled_at: '2025-12-31T23:59:59.123456+00:00' })
    const leases = await claimGreetings(engine, 10)
    assert.deepEqual(leases.map((lease) => lease.job.id).sort(), ['iso', 'python', 'sqlite-text'])
    assert.ok(leases.every((lease) => lease.attempt === 1 && lease.job.attempts === 3))
    handle.close()
    await engine.close()
  })

  test('a job put back by hand after its last attempt is dead, not started once more', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const handle = new DatabaseSync(file)
    insert(handle, 'used-up', { attempts: 3, max_retries: 3 })
    insert(handle, 'fine')
    assert.deepEqual(
      (await claimGreetings(engine, 10)).map((lease) => lease.job.id),
      ['fine'],
    )
    assert.equal((await engine.counts()).greet?.dead, 1)
    handle.close()
    await engine.close()
  })

  // I7
  for (const status of ['completed', 'dead_letter']) {
    test(`a row that another program left as ${status} does not keep its key from the next job`, async () => {
      const engine = await openEngine(`sqlite:${file}`, SETTINGS)
      const handle = new DatabaseSync(file)
      insert(handle, 'finished', { status, idempotency_key: 'k', completed_at: new Date(0).toISOString() })
      const job = newJob({ type: 'greet', key: 'k' })
      assert.deepEqual(await engine.enqueue([job]), [{ id: job.id, status: 'enqueued' }])
      assert.deepEqual(await engine.enqueue([newJob({ type: 'greet', key: 'k' })]), [
        { id: job.id, status: 'duplicate' },
      ])
      assert.equal((await engine.inspector?.find(['finished']))?.[0]?.key, 'k')
      handle.close()
      await engine.close()
    })
  }

  test('a dead letter of another program has its key again when it is replayed, unless a live job has it', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const handle = new DatabaseSync(file)
    const finished = { completed_at: new Date(0).toISOString() }
    insert(handle, 'dead', { status: 'dead_letter', idempotency_key: 'k', ...finished })
    const by = { who: 'ann', reason: 'again' }
    const live = newJob({ type: 'greet', key: 'k' })
    await engine.enqueue([live])
    assert.deepEqual(await engine.deadLetters?.requeue(['dead'], by), [false])
    await engine.controls?.cancel(live.id, by)
    assert.deepEqual(await engine.deadLetters?.requeue(['dead'], by), [true])
    assert.deepEqual(await engine.enqueue([newJob({ type: 'greet', key: 'k' })]), [{ id: 'dead', status: 'duplicate' }])
    handle.close()
    await engine.close()
  })

  test('dead letters of other programs are counted by the causes that the letters show', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const handle = new DatabaseSync(file)
    const dead = { status: 'dead_letter', completed_at: '2025-12-31T23:59:59.000Z' }
    const record = { name: 'TypeError', code: 'E1', message: 'no invoice 5', stack: 'TypeError: at 1' }
    insert(handle, 'silent', dead)
    insert(handle, 'text', { ...dead, error: 'no invoice 4', completed_at: '2025-12-31 23:59:59' })
    insert(handle, 'odd', { ...dead, error: 'no invoice 4', error_record: '{' })
    insert(handle, 'record', { ...dead, error: 'no', error_record: JSON.stringify(record) })
    insert(handle, 'other', { ...dead, error: 'no', error_record: JSON.stringify({ ...record, stack: 'at 2' }) })
    insert(handle, 'short', { ...dead, error: 'no', error_record: '{"name":"Odd","message":"m"}' })
    const { counted, listed } = await causesBothWays(engine)
    assert.deepEqual(counted, listed)
    assert.deepEqual([counted.seen, counted.groups.map(({ count }) => count).sort()], [6, [1, 1, 2, 2]])
    handle.close()
    await engine.close()
  })

  test('nonsense in the columns we added is read as absent', async () => {
    const engine = await openEngine(`sqlite:${file}`, SETTINGS)
    const handle = new DatabaseSync(file)
    insert(handle, 'odd', { tenant: '{', options: 'nope', predecessors: '{"ids":7}', progress: '[', result: '(' })
    const [lease] = await claimGreetings(engine)
    assert.deepEqual([lease?.job.tenant, lease?.job.options, lease?.job.after], [null, null, null])
    assert.equal((await engine.inspector?.find(['odd']))?.[0]?.progress, null)
    handle.close()
    await engine.close()
  })
})
