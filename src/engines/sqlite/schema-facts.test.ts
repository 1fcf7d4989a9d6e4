import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { expect, store, temporary } from '../../../test/fixtures/examined.ts'
import type { Finding } from '../../engine/engine.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { SqliteEngine } from './engine.ts'
import { CANONICAL_TABLE } from './migrations.ts'

describe('the schema', () => {
  const drifts: readonly (readonly [sql: string, severity: Finding['severity'], says: readonly RegExp[]])[] = [
    [
      'DROP INDEX idx_job_queue_claim',
      'error',
      [/index idx_job_queue_claim is missing/, /run: CREATE INDEX/, /statement PEEK cannot run/],
    ],
    ['DROP TRIGGER job_queue_updated_at', 'error', [/trigger job_queue_updated_at is missing/, /run: CREATE TRIGGER/]],
    ['DROP TABLE job_events', 'error', [/table job_events is missing/, /statement RECORD_EVENT cannot run/]],
    [
      'ALTER TABLE job_queue DROP COLUMN progress',
      'error',
      [/column job_queue\.progress is missing/, /ADD COLUMN progress TEXT;/],
    ],
    ['ALTER TABLE job_queue ADD COLUMN mine TEXT', 'ok', []],
    [
      `DROP INDEX idx_job_queue_type; CREATE INDEX idx_job_queue_type ON job_queue(type)`,
      'warning',
      [/idx_job_queue_type is not the one/, /DROP INDEX idx_job_queue_type; CREATE INDEX/],
    ],
    [
      `DROP TABLE job_starts; CREATE TABLE job_starts (type TEXT NOT NULL, at_ms TEXT NOT NULL, starts INTEGER NOT NULL);
       CREATE INDEX idx_job_starts_type ON job_starts(type, at_ms)`,
      'warning',
      [/job_starts\.at_ms is 'TEXT NOT NULL' where Millrace makes 'INTEGER NOT NULL'/],
    ],
    [
      `DROP TABLE job_starts; CREATE TABLE job_starts (type TEXT NOT NULL, at_ms INTEGER NOT NULL,
        starts INTEGER NOT NULL, mine TEXT NOT NULL);
       CREATE INDEX idx_job_starts_type ON job_starts(type, at_ms)`,
      'error',
      [/job_starts\.mine is not Millrace's and has no default/],
    ],
    [
      `DROP TABLE job_latest; CREATE TABLE job_latest (type TEXT NOT NULL, latest_key TEXT NOT NULL, seq INTEGER NOT NULL)`,
      'error',
      [/does not keep type, latest_key unique/],
    ],
  ]
  for (const [sql, severity, says] of drifts) {
    it(`after ${sql.replace(/\s+/g, ' ').slice(0, 60)}`, async (t) => {
      const { handle, found } = await store(t)
      expect(await found('schema'), 'ok')
      handle.exec(sql)
      const findings = await found('schema')
      expect(
        severity === 'ok' ? findings : findings.filter((finding) => finding.severity === severity),
        severity,
        ...says,
      )
    })
  }

  it('what the advice says mends it', async (t) => {
    const { handle, found } = await store(t)
    handle.exec('DROP INDEX idx_job_queue_claim; DROP TRIGGER job_queue_updated_at')
    for (const { advice } of await found('schema')) {
      const sql = /run: (CREATE.*)$/s.exec(advice ?? '')?.[1]
      if (sql !== undefined) handle.exec(sql)
    }
    expect(await found('schema'), 'ok')
  })

  it('takes a table of the conversation pipeline, in any layout, as it is', async (t) => {
    const handle = new DatabaseSync(join(await temporary(t), 'own.db'))
    handle.exec(CANONICAL_TABLE.replaceAll('\n', ' ').replaceAll('TEXT NOT NULL', 'text   not null'))
    const engine = await SqliteEngine.connect({ database: handle }, { clock: new TestClock(), migrate: true })
    expect(
      (await engine.diagnose()).filter(({ subject }) => subject === 'schema'),
      'ok',
    )
    await engine.close()
    handle.close()
  })

  it('one look that fails is a finding, and the others still answer', async (t) => {
    const { engine, handle } = await store(t)
    handle.exec('DROP TABLE job_queue')
    const findings = await engine.diagnose()
    expect(
      findings.filter(({ subject }) => subject === 'clock'),
      'error',
      /could not be checked.*job_queue/,
    )
    assert.ok(findings.some(({ subject, severity }) => subject === 'journal mode' && severity === 'ok'))
  })
})
