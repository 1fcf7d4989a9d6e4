import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { dropSchema, migratedSchema, type PostgresServer, query } from '../../../test/servers/postgres.ts'
import { JOB_STATES } from '../../job/states.ts'
import { CLAIM_AGED } from './claim.ts'
import { COMPLETE, COMPLETE_THERE } from './complete.ts'
import type { Statement } from './database.ts'
import { listJobs } from './inspector.ts'
import { LOOK_AT_LEASES, RENEW } from './leases.ts'
import { COUNT_CAUSES } from './letter-pages.ts'
import { namesIn } from './names.ts'
import { CLAIM_LIMITED_AGED } from './rate-limits.ts'
import { REMOVE_FINISHED } from './retention.ts'
import { SETTLE } from './settle.ts'

const JOBS = 20_000
const HELD = 300

let server: PostgresServer
let [url, schema] = ['', '']

before(async () => {
  ;({ server, url, schema } = await migratedSchema())
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

const lanes = [['a', 'b'], [10, 10], [60_000, 60_000], [0, 0], ['-infinity', '-infinity'], 10, 'w', 'w token']

// X119
for (const [name, statement, values] of [
  ['CLAIM_AGED', CLAIM_AGED, [...lanes, 600_000]],
  ['CLAIM_LIMITED_AGED', CLAIM_LIMITED_AGED, [...lanes, [null, 2], [null, 60_000], ['b'], 600_000]],
] as const) {
  test(`${name} reads the first jobs of each priority from the index, and sorts no more than those`, async () => {
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    await client.query('BEGIN')
    const text = `EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) ${statement(namesIn(schema))}`
    const { rows } = await client.query(text, [null, ...values])
    await client.query('ROLLBACK')
    await client.end()
    const plan = rows.map((row) => String(row['QUERY PLAN'])).join('\n')
    assert.doesNotMatch(plan, /Seq Scan on jobs/, plan)
    const read = [...plan.matchAll(/rows=(\d+)/g)].map(([, count]) => Number(count))
    assert.ok(Math.max(...read) <= 200, plan)
  })
}

test('COUNT_CAUSES reads a page of dead letters along their index', async () => {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query('BEGIN')
  await client.query(`UPDATE ${schema}.jobs SET status = 'failed', completed_at = now() WHERE right(id, 1) = '7'`)
  await client.query(`ANALYZE ${schema}.jobs`)
  const text = `EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) ${COUNT_CAUSES(namesIn(schema))}`
  const { rows } = await client.query(text, [null, null, null, null, '2100-01-01T00:00:00Z', 'z', 100])
  await client.query('ROLLBACK')
  await client.end()
  const plan = rows.map((row) => String(row['QUERY PLAN'])).join('\n')
  assert.match(plan, /Index Scan Backward using idx_jobs_dead/, plan)
  const read = [...plan.matchAll(/rows=(\d+)/g)].map(([, count]) => Number(count))
  assert.ok(Math.max(...read) <= 100, plan)
})

/** Older than all others, so that a list in the order of ids comes to them last. */
const rare = { queued: 'queued', processing: 'in_progress', completed: 'completed', failed: 'dead_letter' } as const

test('a page of jobs of a type or a state reads few others, whatever stands before its jobs', async (t) => {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  t.after(() => client.end())
  await client.query('BEGIN')
  for (const status of Object.keys(rare)) {
    await client.query(
      `INSERT INTO ${schema}.jobs (id, type, status) SELECT 'a-${status}' || n, 'rare', '${status}' FROM generate_series(1, 5) AS n`,
    )
  }
  await client.query(`ANALYZE ${schema}.jobs`)
  const asked = [undefined, ...JOB_STATES].flatMap((state) => [
    { state, type: 'rare' },
    { state, type: undefined },
  ])
  for (const { state, type } of asked) {
    const statement = listJobs(state, { type: type !== undefined, before: true })?.(namesIn(schema))
    // No job stays in this state.
    if (statement === undefined) {
      assert.equal(state, 'failed')
      continue
    }
    const values = [null, 400, type, 'z'].filter((value) => value !== undefined)
    const { rows } = await client.query(`EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) ${statement}`, values)
    const plan = rows.map((row) => String(row['QUERY PLAN'])).join('\n')
    const read = [...plan.matchAll(/(?: rows=|Filter: )(\d+)/g)].map(([, count]) => Number(count))
    // Both types have jobs that wait.
    assert.ok(Math.max(...read) <= 1_000, `${state} ${type}: ${plan}`)
    const found = (await client.query(statement, values)).rows.filter((row) => row.type === 'rare')
    const isBehindOthers = type === undefined && (state === undefined || state === 'queued' || state === 'in_progress')
    const states = Object.values(rare).filter((each) => state === undefined || each === state)
    if (!isBehindOthers) assert.equal(found.length, 5 * states.length, `${state} ${type}`)
  }
})

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
