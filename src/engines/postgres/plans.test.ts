import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { dropSchema, type PostgresServer, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import { systemClock } from '../../time/clock.ts'
import { COMPLETE, COMPLETE_THERE } from './complete.ts'
import type { Statement } from './database.ts'
import { LOOK_AT_LEASES, RENEW } from './leases.ts'
import { migrate } from './module.ts'
import { namesIn } from './names.ts'
import { REMOVE_FINISHED } from './retention.ts'
import { SETTLE } from './settle.ts'

const JOBS = 20_000
const HELD = 300

let server: PostgresServer
let [url, schema] = ['', '']

before(async () => {
  server = await postgresServer()
  ;({ url, schema } = schemaUrl(server))
  await migrate(url, { clock: systemClock, migrate: true })
  await query(
    server.url,
    `INSERT INTO ${schema}.jobs (id, type, status, locked_by, lease_token, lease_expires_at)
     SELECT 'job' || n, 'a', CASE WHEN n <= ${HELD} THEN 'processing' ELSE 'queued' END, 'w', 'w token', now() + interval '1 hour'
     FROM generate_series(1, ${JOBS}) AS n`,
  )
})

after(() => dropSchema(url, schema))

const many = (value: unknown): unknown[] => Array.from({ length: HELD }, () => value)
const ids = Array.from({ length: HELD }, (_, index) => `job${index + 1}`)
const places = Array.from({ length: HELD }, (_, index) => `(0,${index + 1})`)

const cases: readonly [name: string, statement: Statement, values: readonly unknown[]][] = [
  ['COMPLETE_THERE', COMPLETE_THERE, [places, ids, many('null'), many(1), many(1), ['w token'], HELD]],
  ['COMPLETE', COMPLETE, [ids, many('w token'), many('null'), many(1), many(false)]],
  [
    'SETTLE',
    SETTLE,
    [ids, many('w token'), many('dead'), many(0), many('x'), many('y'), many('{}'), many('[{}]'), many(false)],
  ],
  ['RENEW', RENEW, [ids, many('w token'), 60_000]],
  ['LOOK_AT_LEASES', LOOK_AT_LEASES, [ids, many('w token')]],
  ['REMOVE_FINISHED', REMOVE_FINISHED, [ids, many(0)]],
]

// A pooler, or a pool of the user's own, takes none of the settings that our own connections have.
for (const [name, statement, values] of cases) {
  test(`${name} of ${HELD} jobs goes by their ids or places, also where it is planned each time`, async () => {
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    const names = namesIn(schema)
    const { rows } = await client.query(`EXPLAIN ${statement(names)}`, [null, ...values])
    await client.end()
    const plan = rows.map((row) => String(row['QUERY PLAN'])).join('\n')
    assert.doesNotMatch(plan, /Seq Scan on jobs/, plan)
  })
}
