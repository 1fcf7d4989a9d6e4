import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openEngine } from '../../src/engine/open.ts'
import { migrate } from '../../src/engines/postgres/module.ts'
import { EngineError } from '../../src/errors.ts'
import { systemClock } from '../../src/time/clock.ts'
import { newJob } from '../fixtures/new-job.ts'
import { query, schemaUrl, startPostgres } from '../servers/postgres.ts'

test('a connection to a server that has become read-only is left for one to the new primary', async (t) => {
  const server = await startPostgres()
  t.after(() => server.stop())
  const { url } = schemaUrl(server)
  const settings = { clock: systemClock, migrate: false }
  await migrate(url, settings)
  const engine = await openEngine(`${url}&pool=1&listen=false`, settings)
  t.after(() => engine.close())
  await engine.enqueue([newJob()])
  // What is set for the database holds for connections made from now on, as if they led to a standby.
  await query(url, 'alter database postgres set default_transaction_read_only = on')
  await query(url, `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millrace'`)
  const isReadOnly = (error: unknown): boolean => error instanceof EngineError && error.code === 'ERR_STORAGE_READONLY'
  for (let tries = 0; tries < 20; tries += 1) {
    const refused = await engine.enqueue([newJob()]).then(
      () => null,
      (error: unknown) => error,
    )
    if (isReadOnly(refused)) break
    assert.ok(tries < 19, `expected to be told that it is read-only: ${refused}`)
  }
  await query(url, 'begin read write; alter database postgres reset default_transaction_read_only; commit')
  assert.equal((await engine.enqueue([newJob()]))[0]?.status, 'enqueued')
})
