/** The backup that docs/operating-postgres.md shows, restored as it says. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { runCli } from '../cli/in-process.ts'
import { temporaryFolder } from '../cli/run.ts'
import { PGVECTOR_MISSING, postgresProgram } from '../servers/pgvector.ts'
import { query, startPostgres } from '../servers/postgres.ts'
import { busyStore, checkRestored, workOn } from './scene.ts'

const dump = postgresProgram('pg_dump')
const restore = postgresProgram('pg_restore')

test('a backup by pg_dump while workers run loses nothing, and its leased jobs are recovered', {
  skip: dump === null ? PGVECTOR_MISSING.replace('pgvector', 'pg_dump') : false,
}, async (t) => {
  const server = await startPostgres()
  t.after(() => server.stop())
  const at = (database: string): string => Object.assign(new URL(server.url), { pathname: database }).href
  await query(server.url, 'CREATE DATABASE shop')
  assert.equal((await runCli(['migrate', '--engine', at('shop')])).code, 0)
  const file = join(await temporaryFolder(t), 'jobs.dump')
  const scene = await busyStore(at('shop'))
  try {
    dump?.('--format=custom', `--file=${file}`, at('shop'))
    await workOn(scene)
  } finally {
    await scene.end()
  }
  await query(server.url, 'DROP DATABASE shop')
  await query(server.url, 'CREATE DATABASE shop')
  restore?.('--single-transaction', `--dbname=${at('shop')}`, file)
  const { code, out } = await runCli(['doctor', '--json', '--engine', at('shop')])
  assert.doesNotMatch(out, /"severity":"error","subject":"schema"/, `${code} ${out}`)
  await checkRestored(at('shop'), scene)
})
