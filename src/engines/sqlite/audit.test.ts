import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { systemClock } from '../../time/clock.ts'
import { SqliteEngine } from './engine.ts'

const by = { who: 'ann', reason: 'test' }

/** An engine on a database of the test's own, with one dead letter. */
async function start() {
  const database = new DatabaseSync(':memory:')
  const engine = await SqliteEngine.connect({ database }, { clock: systemClock, migrate: true })
  const at = '2026-01-01T00:00:00.000Z'
  database.exec(`INSERT INTO job_queue (id, type, status, scheduled_at, payload, created_at, updated_at, completed_at)
    VALUES ('a', 't', 'dead_letter', '${at}', '{}', '${at}', '${at}', '${at}')`)
  return { database, engine }
}

// X013
test('nobody changes or deletes an audit entry, not even by hand', async () => {
  const { database, engine } = await start()
  assert.deepEqual(await engine.deadLetters.discard(['a'], by), [true])
  assert.throws(() => database.exec(`UPDATE job_audit SET who = 'bob'`), /job_audit is append-only/)
  assert.throws(() => database.exec('DELETE FROM job_audit'), /job_audit is append-only/)
  const [entry, ...more] = await engine.deadLetters.audit({ limit: 10 })
  assert.deepEqual([entry?.who, entry?.action, more], ['ann', 'discard', []])
  await engine.close()
})

test('an act whose audit entry cannot be written does not happen', async () => {
  const { database, engine } = await start()
  database.exec(`CREATE TRIGGER full BEFORE INSERT ON job_audit BEGIN SELECT RAISE(ABORT, 'no room'); END`)
  const { deadLetters } = engine
  for (const act of [
    () => deadLetters.discard(['a'], by),
    () => deadLetters.requeue(['a'], by),
    () => deadLetters.remove(['a'], by),
  ]) {
    await assert.rejects(act(), /no room/)
    assert.equal((await deadLetters.list({ ids: ['a'] }))[0]?.job.state, 'dead_letter')
  }
  assert.deepEqual(
    (await deadLetters.list({ limit: 10 })).map(({ job }) => job.id),
    ['a'],
  )
  await engine.close()
})

test('a removed job leaves no history behind', async () => {
  const { database, engine } = await start()
  await engine.deadLetters.discard(['a'], by)
  const events = (): unknown => database.prepare('SELECT count(*) AS events FROM job_events').get()
  assert.deepEqual({ ...Object(events()) }, { events: 1 })
  assert.deepEqual(await engine.deadLetters.remove(['a'], by), [true])
  assert.deepEqual({ ...Object(events()) }, { events: 0 })
  await engine.close()
})
