import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { type PostgresServer, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { migrate } from './module.ts'

const settings = { clock: systemClock, migrate: true }
let server: PostgresServer

before(async () => {
  server = await postgresServer()
})

/** A table that was there before, where no two rows may have one key, whatever became of them. */
async function adopted(status: string) {
  const { url, schema } = schemaUrl(server)
  await query(
    server.url,
    `create schema ${schema};
     create table ${schema}.jobs (id text primary key, type text, status text not null default 'queued', payload text,
       idempotency_key text unique, completed_at timestamptz);
     insert into ${schema}.jobs (id, type, status, payload, idempotency_key, completed_at)
       values ('finished', 'greet', '${status}', '{}', 'k', now());`,
  )
  await migrate(url, settings)
  const engine = await openEngine(url, settings)
  return { engine, [Symbol.asyncDispose]: () => engine.close() }
}

// I7
describe('a table where keys are unique for ever', () => {
  for (const status of ['completed', 'failed']) {
    test(`a row that is ${status} does not keep its key from the next job`, async () => {
      await using table = await adopted(status)
      const { engine } = table
      const jobs = [newJob({ type: 'greet', key: 'k' }), newJob({ type: 'greet', key: 'other' })]
      assert.deepEqual(
        await engine.enqueue(jobs),
        jobs.map(({ id }) => ({ id, status: 'enqueued' })),
      )
      const again = await engine.enqueue([newJob({ type: 'greet', key: 'k' })])
      assert.deepEqual(again, [{ id: jobs[0]?.id, status: 'duplicate' }])
      assert.equal((await engine.inspector?.find(['finished']))?.[0]?.key, 'k')
    })
  }

  test('a dead letter has its key again when it is replayed, unless a live job has it', async () => {
    await using table = await adopted('failed')
    const { engine } = table
    const by = { who: 'ann', reason: 'again' }
    const live = newJob({ type: 'greet', key: 'k' })
    await engine.enqueue([live])
    assert.deepEqual(await engine.deadLetters?.requeue(['finished'], by), [false])
    await engine.controls?.cancel(live.id, by)
    assert.deepEqual(await engine.deadLetters?.requeue(['finished'], by), [true])
    const again = await engine.enqueue([newJob({ type: 'greet', key: 'k' })])
    assert.deepEqual(again, [{ id: 'finished', status: 'duplicate' }])
  })
})
