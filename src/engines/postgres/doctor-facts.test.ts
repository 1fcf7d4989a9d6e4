import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { expect } from '../../../test/fixtures/examined.ts'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { type PostgresServer, query, schemaUrl, startPostgres } from '../../../test/servers/postgres.ts'
import { type Holder, judgeConnections, judgeHolders, judgeTable, type TableFacts } from '../../doctor/postgres.ts'
import { judgeServerClock } from '../../doctor/server.ts'
import type { Finding } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'
import { FIND_HOLDERS } from './doctor-facts.ts'
import { migrate } from './module.ts'
import { namesIn } from './names.ts'
import { ownStatements, partsOf } from './schema-facts.ts'

const settings = { clock: systemClock, migrate: true }
let server: PostgresServer
let [url, schema] = ['', '']

before(async () => {
  server = await startPostgres(['fsync=on', 'full_page_writes=on', 'max_prepared_transactions=5', 'wal_level=logical'])
  ;({ url, schema } = schemaUrl(server))
  await migrate(url, settings)
})
after(() => server.stop())

const psql = <Row>(text: string): Promise<readonly Row[]> => query<Row>(url, text.replaceAll('@', `${schema}.`))

async function examine(address = url, deep = true): Promise<readonly Finding[]> {
  const engine = await openEngine(address, { clock: systemClock, migrate: false })
  try {
    return (await engine.diagnose?.({ deep })) ?? []
  } finally {
    await engine.close()
  }
}
/** The server applies its settings a moment after the call, to new connections. */
async function reloaded(name: string, value: string): Promise<void> {
  await psql(`select pg_reload_conf()`)
  for (;;) {
    const [row] = await psql<Readonly<Record<string, string>>>(`show ${name}`)
    if (row?.[name] === value) return
    await systemClock.sleep(20)
  }
}

const found = async (subject: string, address = url): Promise<readonly Finding[]> =>
  (await examine(address)).filter((finding) => finding.subject === subject)

describe('the server', () => {
  test('finds everything in order on fresh tables', async () => {
    const findings = await examine()
    expect(findings, 'ok')
    assert.equal(
      findings.map(({ subject }) => subject).join(),
      'server version,durability,clock,notifications,connections,wake-ups,role,schema,horizon,vacuum,vacuum,stuck jobs,unclaimable jobs,overdue jobs,workers,schedules,consistency',
    )
  })

  test('tells what is lost when commits are not synced', async () => {
    await psql(`alter system set synchronous_commit = off`)
    await reloaded('synchronous_commit', 'off')
    expect(await found('durability'), 'warning', /synchronous_commit is off/)
    await psql(`alter system reset synchronous_commit`)
    await psql(`alter system set fsync = off`)
    await reloaded('fsync', 'off')
    expect(await found('durability'), 'error', /fsync is off/)
    await psql(`alter system reset fsync`)
    await reloaded('fsync', 'on')
  })

  test('compares clocks within the time of the question', () => {
    expect([judgeServerClock(10_500, 10_000, 11_000)], 'ok')
    expect([judgeServerClock(4_000, 10_000, 11_000)], 'warning', /6 s behind/)
    expect([judgeServerClock(131_000, 10_000, 11_000)], 'warning', /2 min ahead/)
  })

  test('says when one more process would find no connection', async () => {
    expect([judgeConnections({ allowed: 97, used: 20, own_limit: -1, own: 20 }, 9)], 'ok')
    expect([judgeConnections({ allowed: 97, used: 90, own_limit: -1, own: 20 }, 9)], 'warning', /90 of 97/)
    expect([judgeConnections({ allowed: 97, used: 20, own_limit: 24, own: 20 }, 9)], 'warning', /20 of 24 .*this role/)
    expect(await found('connections', `${url}&pool=150`), 'ok')
    expect(await found('connections', `${url}&pool=197`), 'warning', /takes up to 198/)
  })

  test('tells whether notifications arrive', async () => {
    expect(await found('wake-ups', `${url}&poll=250`), 'ok', /arrive; .*250 ms/)
    expect(await found('wake-ups', `${url}&pooler=transaction`), 'ok', /as a transaction pooler needs it/)
  })
})

describe('tables and roles', () => {
  test('names the rights that a role lacks, and how to grant them', async () => {
    await psql(
      `create role half login; grant usage on schema ${schema} to half; grant select on all tables in schema ${schema} to half`,
    )
    const half = url.replace('postgres@', 'half@')
    expect(
      await found('role', half),
      'error',
      /INSERT, UPDATE, DELETE on .*jobs.*SELECT, INSERT on .*audit/,
      /grant=half/,
    )
    expect(await found('horizon', half), 'ok', /hidden from this one/)
    await migrate(`${url}&grant=half`, settings)
    expect(await examine(half), 'ok')
  })

  test('finds what is missing, switched off or in the way, and says how to mend it', async () => {
    const drift = schemaUrl(server)
    await migrate(drift.url, settings)
    await query(
      url,
      `drop index @idx_jobs_claim; alter table @jobs drop column progress; alter table @jobs add column mine int not null;
       alter table @jobs disable trigger millrace_unblock;
       update pg_index set indisvalid = false where indexrelid = '@idx_jobs_dead'::regclass`.replaceAll(
        '@',
        `${drift.schema}.`,
      ),
    )
    const findings = await found('schema', drift.url)
    expect(
      findings,
      'error',
      /the index idx_jobs_claim is missing → .*CREATE INDEX .*idx_jobs_claim/,
      /the column .*\.progress is missing → .*ADD COLUMN progress JSON NULL/,
      /the column .*\.mine is not Millrace's/,
      /the trigger millrace_unblock is disabled/,
      /the index idx_jobs_dead is invalid: .* REINDEX INDEX "case_\w+"\.idx_jobs_dead;/,
      /the statement REPORT cannot run: column "progress"/,
    )
  })

  test('a schema may have any name', async () => {
    const odd = new URL(server.url)
    odd.searchParams.set('schema', `We'ird "Name" \u00e9`)
    await migrate(odd.href, settings)
    const engine = await openEngine(odd.href, settings)
    await engine.enqueue([newJob(), newJob({ latest: { key: 'k', seq: null } })])
    const consumer = await engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'w' })
    assert.equal((await consumer.claim({ max: 5, waitMs: 0, signal: new AbortController().signal })).length, 2)
    await engine.close()
    expect(await examine(odd.href), 'ok')
  })

  test('knows the parts of the schema and every statement by itself', () => {
    const names = namesIn('x')
    assert.ok(ownStatements().length > 40)
    for (const [name, statement] of ownStatements())
      assert.match(statement(names), /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)/, name)
    assert.deepEqual(partsOf('CREATE UNIQUE INDEX IF NOT EXISTS a ON b\n  (c);\nCREATE INDEX d ON e (f);', 'INDEX'), [
      { name: 'a', sql: 'CREATE UNIQUE INDEX IF NOT EXISTS a ON b (c);' },
      { name: 'd', sql: 'CREATE INDEX d ON e (f);' },
    ])
  })
})

describe('dead rows', () => {
  test('names everyone who keeps them: a session, a prepared transaction, a slot', async () => {
    const sleeper = new pg.Client({ connectionString: server.url, application_name: 'report' })
    await sleeper.connect()
    await sleeper.query(`begin isolation level repeatable read`)
    await sleeper.query(`select 1`)
    await psql(`begin; insert into @millrace_limits values ('held'); prepare transaction 'two-phase'`)
    await psql(`select pg_create_physical_replication_slot('forgotten', true)`)
    const holders = await query<Holder>(url, FIND_HOLDERS(), [null])
    const findings = judgeHolders(holders, true, 0)
    expect(
      findings,
      'warning',
      /session \d+ \(postgres report idle in transaction\) .* pg_terminate_backend\(\d+\)/,
      /prepared transaction 'two-phase' of postgres .* ROLLBACK PREPARED 'two-phase'/,
      /slot 'forgotten' \(physical inactive\) .* pg_drop_replication_slot\('forgotten'\)/,
    )
    // A young transaction is nobody's fault; a slot without a reader is at any age.
    expect(await found('horizon'), 'warning', /'forgotten'/)
    assert.equal((await found('horizon')).length, 1)
    await sleeper.query('rollback')
    await sleeper.end()
    await psql(`rollback prepared 'two-phase'`)
    await psql(`select pg_drop_replication_slot('forgotten')`)
    expect(await found('horizon'), 'ok')
  })

  test('tells when they are not cleared away', async () => {
    const table: TableFacts = {
      name: 'jobs',
      live: 100_000,
      dead: 40_000,
      vacuumed_ms: 0,
      clock_ms: 60_000,
      bytes: 1024,
      frozen_age: 1,
      unvacuumed: false,
    }
    expect(judgeTable(table), 'ok', /100000 rows, 40000 dead, 1\.0 KiB, vacuumed 60 s|1 min ago/)
    expect(judgeTable({ ...table, dead: 60_000 }), 'warning', /VACUUM jobs/)
    expect(judgeTable({ ...table, frozen_age: 1.2e9 }).slice(0, 1), 'error', /VACUUM \(FREEZE\)/)
    await psql(`alter table @jobs set (autovacuum_enabled = false)`)
    expect((await found('vacuum')).slice(0, 1), 'error', /ALTER TABLE case_\w+\.jobs RESET \(autovacuum_enabled\)/)
    await psql(`alter table @jobs reset (autovacuum_enabled)`)
  })
})

describe('jobs', () => {
  test('finds those that nobody recovers, and rows that are not the engine’s to recover', async () => {
    await psql(`insert into @jobs (id, type, status, lease_expires_at, locked_by, updated_at) values
      ('a', 'greet', 'processing', now() - interval '10 minutes', 'w', now()), ('b', 'greet', 'processing', null, null, now() - interval '1 day')`)
    expect(await found('stuck jobs'), 'error', /2 jobs in progress without a valid lease.*expired 23 h ago/)
    await psql(`delete from @jobs`)
  })

  test('finds types that nobody works on, and jobs that are long overdue', async () => {
    await psql(`insert into @jobs (type, run_at) values ('lonely', now() - interval '2 hours'), ('lonely', now())`)
    expect(await found('overdue jobs'), 'warning', /1 job of type 'lonely' overdue, the oldest due for (2 h|120 min)/)
    expect(await found('workers'), 'warning', /'lonely' has 1 job .* no start of this type/)
    await psql(`insert into @jobs (type, status, started_at, attempt_count) values ('lonely', 'completed', now(), 1)`)
    expect(await found('workers'), 'ok')
    await psql(`delete from @jobs`)
  })

  test('finds jobs that no claim can reach', async () => {
    await psql(`insert into @jobs (id, type, latest_key, blocked) values ('c', 'greet', 'k', true)`)
    expect(await found('unclaimable jobs'), 'error', /1 queued job cannot be claimed: blocked/)
    await psql(`update @jobs set blocked = false, waiting_for = 2, attempt_count = 9`)
    expect(await found('unclaimable jobs'), 'ok')
    expect(await found('consistency'), 'warning', /1 job with a count of predecessors/, /1 job with attempts below 0/)
    await psql(`delete from @jobs`)
  })

  test('finds schedules that are due and not run', async () => {
    const hourAgo = `floor(extract(epoch from now() - interval '1 hour') * 1000)`
    await psql(`insert into @millrace_records (kind, name, revision, body, saved_at) values
      ('schedule', 'nightly', '1', json_build_object('nextAtMs', ${hourAgo})::text, now()),
      ('schedule', 'off', '1', '{"nextAtMs":null}', now())`)
    expect(await found('schedules'), 'error', /1 schedule overdue, 'nightly' by 60 min/)
    await psql(`delete from @millrace_records`)
  })

  test('a look that fails is a finding, and the others are made', async () => {
    const broken = schemaUrl(server)
    await migrate(broken.url, settings)
    const engine = await openEngine(broken.url, settings)
    await query(url, `drop table ${broken.schema}.millrace_records`)
    const findings = (await engine.diagnose?.()) ?? []
    expect(
      findings.filter(({ subject }) => subject === 'schedules'),
      'error',
      /could not be checked: .*millrace_records/,
    )
    expect(
      findings.filter(({ subject }) => subject === 'vacuum'),
      'ok',
    )
    await engine.enqueue([newJob()])
    await engine.close()
  })
})
