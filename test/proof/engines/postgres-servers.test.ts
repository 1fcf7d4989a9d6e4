import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { PostgresServers } from './postgres-servers.ts'

test('what an administrator does is done again when the server ends a deadlock by undoing it', async (t) => {
  const servers = await PostgresServers.start()
  t.after(() => servers.stop())
  await servers.administer('create table one ()', 'create table other ()')
  const worker = new pg.Client({ connectionString: servers.primary.url })
  await worker.connect()
  // Only one of the two looks for deadlocks, so it is the one that loses.
  await worker.query(`set deadlock_timeout = '1min'`)
  await worker.query('begin; lock table other')
  let tries = 0
  let waiting: Promise<unknown> = Promise.resolve()
  await servers.session(async (client) => {
    tries += 1
    await client.query('begin; lock table one')
    if (tries === 1) waiting = worker.query('lock table one; commit')
    await client.query('lock table other; commit')
  })
  await waiting
  await worker.end()
  assert.equal(tries, 2)
})
