import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { type Mill, open } from '../../client/mill.ts'
import { COUNT_STATES } from './counts.ts'
import { NEWEST, NEWEST_ENDED, NEWEST_OF, OLDEST_DUE, TYPES } from './inspector.ts'
import { causesOf } from './letter-pages.ts'

const files = tempFiles()

const INSERT = `INSERT INTO job_queue (id, type, payload, status, created_at, updated_at, scheduled_at)
  VALUES (:id, :type, '{}', :status, :at, :at, :at)`

async function stage(t: TestContext): Promise<{ readonly mill: Mill; readonly db: DatabaseSync }> {
  const file = files.next()
  const mill = await open(`sqlite:${file}`)
  const db = new DatabaseSync(file)
  t.after(async () => {
    db.close()
    await mill.close()
  })
  return { mill, db }
}

function add(db: DatabaseSync, id: string, type: string, status: string): void {
  db.prepare(INSERT).run({ id, type, status, at: '2026-01-01T00:00:00.000Z' })
}

const ids = async (mill: Mill, filter: Parameters<Mill['jobs']>[0]): Promise<string> =>
  (await mill.jobs(filter)).map(({ id }) => id).join(' ')

describe('a page of jobs', () => {
  test('has the newest first, whatever another program calls them', async (t) => {
    const { mill, db } = await stage(t)
    for (const [id, type, status] of [
      ['m', 'mail', 'queued'],
      ['z', 'bill', 'completed'],
      ['a', 'mail', 'completed'],
      ['k', 'bill', 'queued'],
      ['b', 'mail', 'queued'],
    ] as const) {
      add(db, id, type, status)
    }
    assert.equal(await ids(mill, {}), 'b k a z m')
    assert.equal(await ids(mill, { type: 'mail' }), 'b a m')
    assert.equal(await ids(mill, { state: 'queued' }), 'b k m')
    assert.equal(await ids(mill, { state: 'queued', limit: 2 }), 'b k')
    assert.equal(await ids(mill, { state: 'queued', limit: 2, before: 'k' }), 'm')
    assert.equal(await ids(mill, { state: 'queued', type: 'bill' }), 'k')
    assert.equal(await ids(mill, { state: 'in_progress' }), '')
    assert.equal(await ids(mill, { type: 'nothing' }), '')
  })

  test('goes on behind a job that has gone meanwhile', async (t) => {
    const { mill, db } = await stage(t)
    for (const id of ['01A', '01B', '01C', '01D']) add(db, id, 'mail', 'completed')
    assert.equal(await ids(mill, { limit: 2 }), '01D 01C')
    db.exec(`DELETE FROM job_queue WHERE id = '01C'`)
    assert.equal(await ids(mill, { limit: 2, before: '01C' }), '01B 01A')
    assert.equal(await ids(mill, { limit: 2, before: '01A' }), '')
    assert.equal(await ids(mill, { limit: 2, before: '00' }), '')
  })

  test('is read along an index and never sorted, and neither is the one that waits longest', async (t) => {
    const { db } = await stage(t)
    for (const statement of [NEWEST, NEWEST_OF, NEWEST_ENDED, TYPES, OLDEST_DUE]) {
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${statement}`).all()
      const steps = plan.map(({ detail }) => String(detail))
      // The oldest of each priority are at most ten, and these are put in order.
      const sorted = steps.filter((step) => step.includes('TEMP B-TREE'))
      assert.equal(sorted.length, statement === OLDEST_DUE ? 1 : 0, steps.join('\n'))
      const walked = steps.filter((step) => /^SCAN job_queue/.test(step) && statement !== NEWEST)
      assert.deepEqual(walked, [])
    }
  })
})

test('dead letters are counted by their causes along their index, whatever the filter', async (t) => {
  const { db } = await stage(t)
  const bounds = { type: 'mail', sinceMs: 0, beforeMs: 1 }
  for (const filter of [{}, { type: 'mail' }, bounds, { ...bounds, after: { completedAtMs: 1, id: 'a' } }]) {
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${causesOf({ ...filter, limit: 10 })}`).all()
    const steps = plan.map(({ detail }) => String(detail))
    assert.ok(
      steps.some((step) => /^(SEARCH|SCAN) job_queue USING INDEX idx_job_queue_dead/.test(step)),
      steps.join('\n'),
    )
    // Only the page is put in order, by its errors.
    assert.deepEqual(
      steps.filter((step) => step.includes('TEMP B-TREE')),
      ['USE TEMP B-TREE FOR GROUP BY'],
    )
  }
})

test('counts are of one moment, while another process claims between the statements', async (t) => {
  const file = files.next()
  const handle = new DatabaseSync(file)
  const mill = await open(handle)
  const other = new DatabaseSync(file)
  t.after(async () => {
    await mill.close()
    handle.close()
    other.close()
  })
  for (const id of ['a', 'b', 'c', 'd', 'e']) add(other, id, 'mail', 'queued')
  const prepare = handle.prepare.bind(handle)
  handle.prepare = (sql, ...rest) => {
    if (sql === COUNT_STATES) other.exec(`UPDATE job_queue SET status = 'in_progress' WHERE id IN ('a', 'b', 'c', 'd')`)
    return prepare(sql, ...rest)
  }
  const counts = await mill.counts()
  assert.deepEqual([counts.mail?.ready, counts.mail?.delayed, counts.mail?.inProgress], [5, 0, 0])
  handle.exec('BEGIN')
  assert.equal((await mill.counts()).mail?.inProgress, 4)
  handle.exec('COMMIT')
})
