import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { type PostgresServer, postgresServer, query, schemaUrl } from '../../../test/servers/postgres.ts'
import { leadershipOf, pausesOf, schedulesOf } from '../../engine/capability-checks.ts'
import { openEngine } from '../../engine/open.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { systemClock } from '../../time/clock.ts'
import { jobsSql } from './jobs-table.ts'
import { SchemaWatch } from './migrate.ts'
import { MIGRATIONS } from './migrations.ts'
import { migrate, planMigrations } from './module.ts'
import { namesIn } from './names.ts'

const settings = { clock: systemClock, migrate: true }
let server: PostgresServer

before(async () => {
  server = await postgresServer()
})

test('a schema of the first version is brought up to date, with its jobs and its audit', async () => {
  const { url, schema } = schemaUrl(server)
  await query(server.url, `create schema ${schema}; ${jobsSql(namesIn(schema))}`)
  await query(
    server.url,
    `create table ${schema}.millrace_schema (version int primary key, name text not null, applied_at timestamptz not null);
     insert into ${schema}.millrace_schema values (1, 'jobs', now());
     insert into ${schema}.jobs (type, payload) values ('mail', '1');
     insert into ${schema}.millrace_audit (at, who, reason, action, job_id, type, before)
     values (now(), 'ann', 'old', 'discard', 'j', 'mail', '{}')`,
  )
  await assert.rejects(openEngine(url, settings), { code: 'ERR_SCHEMA_MISSING' })
  assert.equal((await planMigrations(url, settings)).pending[0]?.name, 'presence')
  await migrate(url, settings)
  const engine = await openEngine(url, settings)
  try {
    assert.equal((await engine.counts()).mail?.ready, 1)
    await pausesOf(engine).pause('mail', { who: 'ann', reason: 'new' })
    const note = { who: 'ann', reason: 'new', jobId: null, type: null, before: {}, after: null }
    await engine.deadLetters?.note({ ...note, action: 'schedule-run', subject: 'nightly' })
    const entries = (await engine.deadLetters?.audit({ limit: 5 })) ?? []
    assert.deepEqual(
      entries.map(({ action, subject }) => [action, subject]),
      [
        ['schedule-run', 'nightly'],
        ['discard', null],
      ],
    )
  } finally {
    await engine.close()
  }
})

test('a schema of version 5 keeps its schedules, pauses and terms as records', async () => {
  const { url, schema } = schemaUrl(server)
  const old = MIGRATIONS.filter(({ version }) => version <= 5)
  await query(
    server.url,
    `create schema ${schema};
     create table ${schema}.millrace_schema (version int primary key, name text not null, applied_at timestamptz not null);
     ${old.map(({ version, name, sql }) => `${sql(namesIn(schema))} insert into ${schema}.millrace_schema values (${version}, '${name}', now());`).join('\n')}
     insert into ${schema}.millrace_schedules values
       ('nightly', 'r1', to_timestamp(1800000000.123), '{"type":"report","cron":"0 3 * * *"}'),
       ('off', 'r2', null, '{"type":"report","cron":"0 4 * * *","paused":true}'), ('broken', 'r3', null, 'no json');
     insert into ${schema}.millrace_pauses values ('mail', 'ann', 'it is "down"', to_timestamp(5));
     insert into ${schema}.millrace_leaders values ('clock', null, 3600000, now()),
       ('keeper', 'me', 7, now() + interval '1 minute');
     insert into ${schema}.millrace_presence values ('host:1:a', 'mail', '{}', now(), now() + interval '1 minute')`,
  )
  await migrate(url, settings)
  const engine = await openEngine(url, settings)
  try {
    const schedules = await schedulesOf(engine).list()
    assert.deepEqual(
      schedules.map(({ name, revision, body }) => [name, revision, body]),
      [
        ['broken', 'r3', 'no json'],
        ['nightly', 'r1', '{"nextAtMs":1800000000123,"type":"report","cron":"0 3 * * *"}'],
        ['off', 'r2', '{"nextAtMs":null,"type":"report","cron":"0 4 * * *","paused":true}'],
      ],
    )
    assert.deepEqual(await pausesOf(engine).list(), [
      { type: 'mail', who: 'ann', reason: 'it is "down"', sinceMs: 5_000 },
    ])
    const term = await leadershipOf(engine).campaign('keeper', 'other', 1_000)
    assert.deepEqual([term.holder, term.number], ['me', 7])
    assert.equal((await engine.records?.list('worker'))?.[0]?.name, 'host:1:a\nmail')
  } finally {
    await engine.close()
  }
  const [clock] = await query<{ body: string }>(
    server.url,
    `select body from ${schema}.millrace_records where kind = 'clock'`,
  )
  assert.equal(clock?.body, '3600000')
})

test('the version of the schema is asked for only where no look has brought it lately', async () => {
  const clock = new TestClock()
  let asked = 0
  const watch = new SchemaWatch(clock, async () => {
    asked += 1
  })
  for (let look = 0; look < 4; look += 1) {
    await clock.advance(1_250)
    watch.assertKnown()
    watch.assertKnownSoFar()
    watch.saw({ needed: 1 })
  }
  await clock.advance(60_000)
  watch.assertKnownSoFar()
  assert.equal(asked, 0)
  watch.assertKnown()
  assert.equal(asked, 1)
})

test('a package that a schema is too new for asks again, also before looks, until it knows the schema', async () => {
  const clock = new TestClock()
  const watch = new SchemaWatch(clock, async () => {})
  watch.saw({ needed: 1_000 })
  assert.throws(() => watch.assertKnownSoFar(), { code: 'ERR_SCHEMA_NEWER' })
  await clock.advance(2_000)
  assert.throws(() => watch.assertKnownSoFar(), { code: 'ERR_SCHEMA_NEWER' })
  await Promise.resolve()
  await Promise.resolve()
  watch.assertKnownSoFar()
})
