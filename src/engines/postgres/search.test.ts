import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { dropSchema, migratedSchema, type PostgresServer, query } from '../../../test/servers/postgres.ts'
import { defineJob, type Mill, open } from '../../index.ts'
import { parseSearch } from '../../job/search.ts'
import { namesIn } from './names.ts'
import { statementOf } from './search.ts'

const JOBS = 20_000

let server: PostgresServer
let mill: Mill
let [url, schema] = ['', '']

before(async () => {
  ;({ server, url, schema } = await migratedSchema())
  await query(
    server.url,
    `INSERT INTO ${schema}.jobs (id, type, status, tenant, options, idempotency_key, fail_reason)
     SELECT '01J' || lpad(n::text, 23, '0'), 'a', 'completed', CASE WHEN n % 100 = 0 THEN '{"orgId":"acme"}'::json END,
       CASE WHEN n % 100 = 0 THEN '{"tags":["t"]}'::json END, 'key-' || n, CASE WHEN n % 500 = 0 THEN 'boom' END
     FROM generate_series(1, ${JOBS}) AS n`,
  )
  await query(server.url, `ANALYZE ${schema}.jobs, ${schema}.millrace_tags`)
  mill = await open(url)
})

after(async () => {
  await mill.close()
  await dropSchema(url, schema)
})

for (const text of [
  'tag:t',
  'key:key-7',
  'tenant:acme',
  'error:boom',
  'payload.n:1',
  'type:b',
  'state:completed',
  'type:a state:queued',
  'tag:t error:x type:a since:1d',
]) {
  test(`a step of '${text}' reads no more of the table than it looks at`, async () => {
    const statement = statementOf(parseSearch(text, 0), { low: false, high: false })(namesIn(schema))
    const given = `NULL, ARRAY['t'], NULL, NULL, 50, NULL, ARRAY['x'], ARRAY['x'], ARRAY['x']`
    const types = 'timestamptz, text[], text, text, int, text, text[], text[], text[]'
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    // As a generic plan, which knows neither the values nor how many rows are asked for.
    await client.query('SET plan_cache_mode = force_generic_plan')
    await client.query(`PREPARE step (${types}) AS ${statement}`)
    const { rows } = await client.query(`EXPLAIN EXECUTE step (${given})`)
    await client.end()
    const lines = rows.map((row) => String(row['QUERY PLAN'])).join('\n')
    assert.match(lines, /Index/)
    assert.doesNotMatch(lines, /Seq Scan on jobs/, lines)
  })
}

test('the tags of jobs go with them', async () => {
  const job = defineJob({ type: 'tagged' })
  const { id } = await mill.enqueue(job, 1, { tags: ['one', 'two'] })
  const tags = () => query(server.url, `SELECT tag FROM ${schema}.millrace_tags WHERE job_id = '${id}' ORDER BY tag`)
  assert.deepEqual(await tags(), [{ tag: 'one' }, { tag: 'two' }])
  await query(server.url, `DELETE FROM ${schema}.jobs WHERE id = '${id}'`)
  assert.deepEqual(await tags(), [])
})

test('jobs with ids of another program are found by time', async () => {
  const foreign = 'f47ac10b-58cc-4372-a567-0e02b2c3d479'
  await query(server.url, `INSERT INTO ${schema}.jobs (id, type, payload) VALUES ('${foreign}', 'foreign', '{}')`)
  const { jobs } = await mill.search('type:foreign since:1h')
  assert.deepEqual(
    jobs.map(({ id }) => id),
    [foreign],
  )
})
