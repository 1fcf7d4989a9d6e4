import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { dropSchema, postgresServer, query, schemaUrl } from '../servers/postgres.ts'
import { runCli } from './in-process.ts'

let [url, schema] = ['', '']

before(async () => {
  ;({ url, schema } = schemaUrl(await postgresServer()))
})

after(() => dropSchema(url, schema))

const millrace = (...args: readonly string[]) => runCli(['--engine', url, ...args])

describe('the command line on Postgres', () => {
  test('commands refuse a schema that was not migrated, and migrate makes it, once', async () => {
    const refused = await millrace('enqueue', 'greet', '{}')
    assert.deepEqual([refused.code, refused.out], [1, ''])
    assert.match(refused.err, /millrace migrate/)
    const dry = await millrace('migrate', '--dry-run')
    assert.match(dry.out, /CREATE TABLE IF NOT EXISTS[\s\S]*nothing was changed/)
    assert.deepEqual(await query(url, 'select 1 from pg_namespace where nspname = $1', [schema]), [])
    assert.match((await millrace('migrate')).out, /from version 0 to \d+: jobs/)
    assert.match((await millrace('migrate')).out, /version \d+; nothing to do/)
  })

  test('what is enqueued is counted, shown, cancelled and listed', async () => {
    const enqueued = await millrace('enqueue', 'greet', '{"name":"Ada"}', '--json')
    assert.equal(enqueued.code, 0, enqueued.err)
    const { id } = JSON.parse(enqueued.out)
    assert.match((await millrace('stats')).out, /greet/)
    assert.match((await millrace('job', id)).out, new RegExp(id))
    assert.equal((await millrace('cancel', id, '--reason', 'test')).code, 0)
    assert.match((await millrace('jobs')).out, /cancelled/)
    const [row] = await query<{ status: string; ended: string }>(url, `select status, ended from ${schema}.jobs`)
    assert.deepEqual(row, { status: 'failed', ended: 'cancelled' })
  })
})
