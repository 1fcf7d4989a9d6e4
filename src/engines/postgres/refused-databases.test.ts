import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type PostgresServer, postgresServer, query } from '../../../test/servers/postgres.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { SCHEMA_VERSION, schemaSql } from './migrations.ts'
import { migrate, planMigrations } from './module.ts'
import { namesIn } from './names.ts'

const settings = { clock: systemClock, migrate: true }
let server: PostgresServer

before(async () => {
  server = await postgresServer()
})

describe('databases that Millrace does not work on', () => {
  test('a database whose encoding cannot keep JSON is refused by migrate and named by the doctor', async () => {
    for (const encoding of ['LATIN1', 'SQL_ASCII']) {
      const name = `case_${process.pid}_${encoding.toLowerCase()}`
      await query(
        server.url,
        `create database ${name} encoding '${encoding}' lc_collate 'C' lc_ctype 'C' template template0`,
      )
      const url = server.url.replace(/\/postgres$/, `/${name}`)
      for (const call of [migrate, planMigrations])
        await assert.rejects(call(url, settings), new RegExp(`encoding ${encoding}.*UTF8`, 's'))
      // One that was migrated before this was refused.
      const names = namesIn('public')
      await query(
        url,
        `create table millrace_schema (version int primary key, name text, applied_at timestamptz); ${schemaSql(names)}; insert into millrace_schema values (${SCHEMA_VERSION}, 'x', now())`,
      )
      const engine = await openEngine(url, settings)
      const found = (await engine.diagnose?.({}))?.find(({ subject }) => subject === 'encoding')
      assert.deepEqual([found?.severity, found?.detail.includes(encoding)], ['error', true])
      await engine.close()
      await query(server.url, `drop database ${name} with (force)`)
    }
  })

  test('a database with array_nulls = off is refused by migrate, by opening, and named by the doctor', async () => {
    const name = `case_${process.pid}_nulls`
    await query(server.url, `create database ${name}`)
    const url = server.url.replace(/\/postgres$/, `/${name}`)
    await migrate(url, settings)
    // A connection that was opened before knows nothing of it; one of the doctor's that is opened later does.
    const engine = await openEngine(`${url}?pool=1&listen=false`, settings)
    await query(server.url, `alter database ${name} set array_nulls = off`)
    for (const call of [migrate, planMigrations, openEngine])
      await assert.rejects(call(url, settings), /array_nulls is off/)
    await query(server.url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
    let found: string | undefined
    for (let tries = 0; found === undefined && tries < 100; tries += 1) {
      found = (await engine.diagnose?.({}))?.find(({ subject }) => subject === 'array_nulls')?.severity
    }
    assert.equal(found, 'error')
    await engine.close()
    await query(server.url, `drop database ${name} with (force)`)
  })
})
