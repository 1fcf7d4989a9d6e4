import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { temporaryFolder } from '../../test/cli/run.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../../test/servers/postgres.ts'
import { webhooksSchema } from '../webhooks/store/schema.ts'
import { migrationOf } from './commands.ts'

const plan = (url: string) => migrationOf(webhooksSchema)(url, { dryRun: true, nowMs: 0 })

test('a dry run prints SQL that the database takes as it is', async (t) => {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await query(server.url, `CREATE SCHEMA ${schema}`)
  t.after(() => dropSchema(server.url, schema))
  for (const sql of await plan(url)) await query(server.url, sql)
  const tables = `SELECT tablename AS name FROM pg_tables WHERE schemaname = '${schema}' ORDER BY 1`
  const expected = [{ name: 'webhook_deliveries' }, { name: 'webhook_endpoints' }, { name: 'webhook_publications' }]
  assert.deepEqual(await query(server.url, tables), expected)
  using database = new DatabaseSync(':memory:')
  for (const sql of await plan(`sqlite:${join(await temporaryFolder(t), 'jobs.db')}`)) database.exec(sql)
  const made = database.prepare(`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1`).all()
  assert.deepEqual(
    made.map(({ name }) => ({ name })),
    expected,
  )
})
