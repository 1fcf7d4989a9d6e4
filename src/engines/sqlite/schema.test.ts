import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, test } from 'node:test'
import { assertVersionText, Connection } from './database.ts'
import { applyMigrations, assertCurrent, pendingMigrations, schemaVersions } from './migrate.ts'
import { ADDED_COLUMNS, CANONICAL_TABLE, INDEXES_AND_TABLES, MIGRATIONS, SCHEMA_VERSION } from './migrations.ts'

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const NOW = '2026-01-01T00:00:00.000Z'

/** Only the canonical columns that have no default: what any other program would write. */
const PLAIN_INSERT = `INSERT INTO job_queue (id, type, scheduled_at, payload, created_at, updated_at) VALUES (?, 'greet', ?, '{}', ?, ?)`

let database: DatabaseSync
let connection: Connection

beforeEach(() => {
  database = new DatabaseSync(':memory:')
  connection = new Connection(database)
  applyMigrations(connection, Date.parse(NOW))
})

function insert(id: string): void {
  database.prepare(PLAIN_INSERT).run(id, NOW, NOW, NOW)
}

function row(id: string): Record<string, unknown> {
  return { ...database.prepare('SELECT * FROM job_queue WHERE id = ?').get(id) }
}

describe('the canonical table', () => {
  // B18..B36 B17 X005
  test('has every canonical column with its type, null rule and default', () => {
    const columns = new Map(
      (database.prepare('PRAGMA table_info(job_queue)').all() as Record<string, unknown>[]).map((column) => [
        column.name,
        column,
      ]),
    )
    const canonical: [name: string, type: string, notNull: number, fallback: string | null][] = [
      ['id', 'TEXT', 0, null],
      ['type', 'TEXT', 1, null],
      ['status', 'TEXT', 1, "'queued'"],
      ['priority', 'INTEGER', 1, '5'],
      ['scheduled_at', 'TEXT', 1, null],
      ['lease_owner', 'TEXT', 0, null],
      ['lease_until', 'TEXT', 0, null],
      ['payload', 'TEXT', 1, null],
      ['idempotency_key', 'TEXT', 0, null],
      ['attempts', 'INTEGER', 1, '0'],
      ['max_retries', 'INTEGER', 1, '3'],
      ['error', 'TEXT', 0, null],
      ['created_at', 'TEXT', 1, null],
      ['updated_at', 'TEXT', 1, null],
      ['started_at', 'TEXT', 0, null],
      ['completed_at', 'TEXT', 0, null],
      ['result', 'TEXT', 0, null],
    ]
    for (const [name, type, notNull, fallback] of canonical) {
      const column = columns.get(name)
      assert.deepEqual([name, column?.type, column?.notnull, column?.dflt_value], [name, type, notNull, fallback])
    }
    assert.equal(columns.get('id')?.pk, 1)
  })

  // B20 B22 B29 B30
  test('takes a plain INSERT of the canonical columns', () => {
    insert('a')
    const { status, priority, attempts, max_retries } = row('a')
    assert.deepEqual(
      { status, priority, attempts, max_retries },
      { status: 'queued', priority: 5, attempts: 0, max_retries: 3 },
    )
  })

  // B21
  test('refuses a status outside the five', () => {
    insert('a')
    assert.throws(() => database.exec(`UPDATE job_queue SET status = 'pending'`), /CHECK constraint failed/)
    for (const status of ['queued', 'in_progress', 'completed', 'failed', 'dead_letter']) {
      database.prepare('UPDATE job_queue SET status = ?').run(status)
    }
  })

  // B23
  test('refuses a priority outside 1 to 10', () => {
    insert('a')
    for (const priority of [0, 11]) {
      assert.throws(
        () => database.prepare('UPDATE job_queue SET priority = ?').run(priority),
        /CHECK constraint failed/,
      )
    }
  })

  // B24
  test('refuses a job without a time', () => {
    assert.throws(() => database.prepare(PLAIN_INSERT).run('a', null, NOW, NOW), /NOT NULL constraint failed/)
  })

  // B28
  test('admits any number of jobs without a key and one job per key', () => {
    insert('a')
    insert('b')
    database.exec(`UPDATE job_queue SET idempotency_key = 'k' WHERE id = 'a'`)
    assert.throws(
      () => database.exec(`UPDATE job_queue SET idempotency_key = 'k' WHERE id = 'b'`),
      /UNIQUE constraint failed/,
    )
  })

  // B37..B40 X078
  test('has the canonical indexes by name and definition', () => {
    const sql = new Map(
      (
        database.prepare(`SELECT name, sql FROM sqlite_master WHERE type = 'index'`).all() as {
          name: string
          sql: string
        }[]
      ).map((index) => [index.name, index.sql]),
    )
    assert.match(sql.get('idx_job_queue_dequeue') ?? '', /\(status, priority, scheduled_at\) WHERE status = 'queued'$/)
    assert.match(sql.get('idx_job_queue_lease_expiry') ?? '', /\(lease_until\) WHERE status = 'in_progress'$/)
    assert.match(sql.get('idx_job_queue_type') ?? '', /job_queue\(type, status\)$/)
    assert.match(
      sql.get('idx_job_queue_idempotency') ?? '',
      /job_queue\(idempotency_key\) WHERE idempotency_key IS NOT NULL$/,
    )
  })
})

describe('the updated_at trigger', () => {
  // B41 X074
  test('writes UTC in the stored form after an update by hand', () => {
    insert('a')
    const before = new Date().toISOString()
    database.exec(`UPDATE job_queue SET priority = 2`)
    const { updated_at } = row('a')
    assert.match(String(updated_at), ISO)
    assert.ok(String(updated_at) >= before, `${updated_at} is before ${before}`)
  })

  // X074
  test('leaves a value that the update itself wrote', () => {
    insert('a')
    const explicit = '2026-02-02T02:02:02.222Z'
    database.prepare('UPDATE job_queue SET priority = 2, updated_at = ?').run(explicit)
    assert.equal(row('a').updated_at, explicit)
  })

  // X075 X194
  test('does not recurse even with recursive triggers on, twice within a millisecond', () => {
    insert('a')
    database.exec('PRAGMA recursive_triggers = ON')
    for (let priority = 1; priority <= 10; priority += 1)
      database.prepare('UPDATE job_queue SET priority = ?').run(priority)
    assert.equal(row('a').priority, 10)
  })

  // X076
  test('does not change what RETURNING showed when the statement wrote updated_at', () => {
    insert('a')
    const returned = database
      .prepare(`UPDATE job_queue SET priority = 3, updated_at = ? RETURNING updated_at`)
      .get('2026-03-03T03:03:03.333Z')
    assert.equal(returned?.updated_at, row('a').updated_at)
  })
})

describe('migrations', () => {
  // B42 X077
  test('bring a file of the first version up to date, with its jobs and its audit', () => {
    const old = new DatabaseSync(':memory:')
    const older = new Connection(old)
    old.exec(CANONICAL_TABLE)
    for (const { name, definition } of ADDED_COLUMNS) old.exec(`ALTER TABLE job_queue ADD COLUMN ${name} ${definition}`)
    old.exec(`${INDEXES_AND_TABLES}
      CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
      INSERT INTO millrace_schema VALUES (1, 'job-queue', '${NOW}');
      INSERT INTO job_audit (at, who, reason, action, job_id, type, before)
      VALUES ('${NOW}', 'ann', 'old', 'discard', 'j', 'mail', '{}');`)
    old.prepare(PLAIN_INSERT).run('j', NOW, NOW, NOW)
    assert.throws(() => assertCurrent(older), { code: 'ERR_SCHEMA_MISSING' })
    assert.equal(pendingMigrations(older)[0]?.name, 'presence')
    applyMigrations(older, Date.parse(NOW))
    assertCurrent(older)
    assert.deepEqual(
      { ...old.prepare('SELECT action, subject FROM job_audit').get() },
      { action: 'discard', subject: null },
    )
    assert.equal(old.prepare('SELECT count(*) AS jobs FROM job_queue').get()?.jobs, 1)
    old.close()
  })

  test('keep the schedules, pauses, terms and workers of a file of version 5 as records', async () => {
    const old = new DatabaseSync(':memory:')
    const older = new Connection(old)
    for (const { version, name, statements } of MIGRATIONS.filter(({ version }) => version <= 5)) {
      if (version === 1) {
        old.exec(
          'CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)',
        )
      }
      for (const sql of statements(older)) old.exec(sql)
      old.prepare('INSERT INTO millrace_schema VALUES (?, ?, ?)').run(version, name, NOW)
    }
    old.exec(`INSERT INTO millrace_schedules VALUES ('nightly', 'r1', 1800000000000, '{"type":"report","cron":"0 3 * * *"}');
      INSERT INTO millrace_schedules VALUES ('broken', 'r2', NULL, 'no json');
      INSERT INTO millrace_pauses VALUES ('mail', 'ann', 'it is "down"', 5);
      INSERT INTO millrace_leaders VALUES ('keeper', 'me', 7, 1000, 2000);
      INSERT INTO millrace_presence VALUES ('host:1:a', 'mail', '{}', 3, 4);`)
    applyMigrations(older, Date.parse(NOW))
    assertCurrent(older)
    const records = old.prepare('SELECT * FROM millrace_records ORDER BY kind, name').all()
    assert.deepEqual(
      records.map((record) => Object.values(record)),
      [
        ['leader', 'keeper', 'migrated', '{"holder":"me","number":7,"leaseMs":1000}', 1000, 2000],
        ['pause', 'mail', 'migrated', '{"who":"ann","reason":"it is \\"down\\""}', 5, null],
        ['schedule', 'broken', 'r2', 'no json', 0, null],
        ['schedule', 'nightly', 'r1', '{"type":"report","cron":"0 3 * * *","nextAtMs":1800000000000}', 0, null],
        ['worker', 'host:1:a\nmail', '', '{}', 3, 4],
      ],
    )
    const tables = old.prepare(`SELECT name FROM sqlite_schema WHERE name LIKE 'millrace_%' AND type = 'table'`).all()
    for (const gone of ['schedules', 'pauses', 'leaders', 'presence']) {
      assert.ok(!tables.some(({ name }) => name === `millrace_${gone}`), gone)
    }
    old.close()
  })

  test('can be applied again, and record their version', () => {
    insert('a')
    applyMigrations(connection, Date.parse(NOW))
    assert.deepEqual({ ...schemaVersions(connection) }, { needed: 8, applied: SCHEMA_VERSION })
    assert.deepEqual(pendingMigrations(connection), [])
    assert.equal(row('a').id, 'a')
  })

  // X074 X077
  test('complete a table that was there before, keep its jobs and mend its trigger', () => {
    const old = new DatabaseSync(':memory:')
    old.exec(CANONICAL_TABLE)
    old.exec(`CREATE TRIGGER job_queue_updated_at AFTER UPDATE ON job_queue FOR EACH ROW BEGIN
      UPDATE job_queue SET updated_at = (datetime('now', 'localtime') || 'Z') WHERE id = NEW.id; END`)
    old.prepare(PLAIN_INSERT).run('old', NOW, NOW, NOW)
    applyMigrations(new Connection(old), Date.parse(NOW))
    old.exec(`UPDATE job_queue SET priority = 1`)
    const kept = old.prepare('SELECT id, priority, lease_token, waiting_for, updated_at FROM job_queue').get()
    assert.deepEqual(
      { ...kept, updated_at: ISO.test(String(kept?.updated_at)) },
      { id: 'old', priority: 1, lease_token: null, waiting_for: 0, updated_at: true },
    )
  })

  test('refuse a newer schema and touch nothing', () => {
    database.prepare(`INSERT INTO millrace_schema VALUES (?, 'later', ?)`).run(SCHEMA_VERSION + 1, NOW)
    assert.throws(() => applyMigrations(connection, 0), { code: 'ERR_SCHEMA_NEWER' })
    assert.throws(() => assertCurrent(connection), { code: 'ERR_SCHEMA_NEWER' })
  })

  test('are asked for when the schema is missing', () => {
    assert.throws(() => assertCurrent(new Connection(new DatabaseSync(':memory:'))), { code: 'ERR_SCHEMA_MISSING' })
  })
})

describe('the version guard', () => {
  test('refuses SQLite before 3.51.3', () => {
    for (const version of ['3.51.2', '3.49.2', '3.7.0', '2.9.9']) {
      assert.throws(() => assertVersionText(version), { code: 'ERR_SQLITE_VERSION' }, version)
    }
  })

  test('accepts 3.51.3 and later', () => {
    for (const version of ['3.51.3', '3.52.0', '3.53.4', '4.0.0']) assertVersionText(version)
  })
})
