import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, test } from 'node:test'
import { claimAll } from '../../../test/fixtures/claim.ts'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { judgeFreeSpace } from '../../doctor/sqlite.ts'
import type { RetentionRule } from '../../engine/retention.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { toIso } from '../../time/iso.ts'
import { Connection } from './database.ts'
import { SqliteEngine } from './engine.ts'
import { AdaptiveBatch, REMOVE_FINISHED, readPages } from './retention.ts'

const DAY_MS = 86_400_000
const NO_WAIT = new AbortController().signal

const files = tempFiles()
let file: string
let clock: TestClock
beforeEach(() => {
  file = files.next()
  clock = new TestClock()
})

async function opened(database: string | DatabaseSync = file): Promise<SqliteEngine> {
  const engine = await SqliteEngine.connect({ database, synchronous: 'normal' }, { clock, migrate: true })
  return engine
}

/** Completed jobs as another program would write them, `days` ago. */
function fill(handle: DatabaseSync, count: number, days = 8, payload = '{}'): void {
  const at = toIso(clock.nowMs() - days * DAY_MS)
  const insert =
    handle.prepare(`INSERT INTO job_queue (id, type, status, scheduled_at, payload, created_at, updated_at, completed_at)
    VALUES (?, 'a', 'completed', ?, ?, ?, ?, ?)`)
  const first = Number(handle.prepare('SELECT count(*) AS count FROM job_queue').get()?.count)
  handle.exec('BEGIN')
  for (let n = 0; n < count; n += 1) insert.run(`j${first + n}`, at, payload, at, at, at)
  handle.exec('COMMIT')
}

const old = (): readonly RetentionRule[] => [
  { what: 'completed', beforeMs: clock.nowMs() - 7 * DAY_MS },
  { what: 'ended', beforeMs: clock.nowMs() - 7 * DAY_MS },
]

async function sweepAll(engine: SqliteEngine, max = 100): Promise<number> {
  let removed = 0
  let from: string | null = null
  do {
    const sweep: { removed: number; next: string | null } = await engine.retention.sweep(old(), { from, max })
    removed += sweep.removed
    from = sweep.next
  } while (from !== null)
  return removed
}

const pragma = (handle: DatabaseSync, name: string): unknown => handle.prepare(`PRAGMA ${name}`).get()?.[name]

describe('the walk', () => {
  test('does not end at a young job: a newer version of a latest key has the place of the older one', async () => {
    const engine = await opened()
    const latest = { key: 'k', seq: null }
    await engine.enqueue([newJob({ latest })])
    const handle = new DatabaseSync(file)
    fill(handle, 300)
    await engine.enqueue([newJob({ latest })])
    assert.equal(await sweepAll(engine, 10), 300)
    handle.close()
    await engine.close()
  })

  test('keeps what another program finished without a time, or with an invalid one', async () => {
    const engine = await opened()
    const handle = new DatabaseSync(file)
    fill(handle, 4)
    handle.exec(`UPDATE job_queue SET completed_at = NULL WHERE id = 'j0'`)
    handle.exec(`UPDATE job_queue SET completed_at = 'yesterday' WHERE id = 'j1'`)
    handle.exec(`UPDATE job_queue SET completed_at = '2025-12-01 10:00:00' WHERE id = 'j2'`)
    assert.equal(await sweepAll(engine), 2)
    assert.deepEqual(
      handle
        .prepare('SELECT id FROM job_queue ORDER BY id')
        .all()
        .map(({ id }) => id),
      ['j0', 'j1'],
    )
    handle.close()
    await engine.close()
  })

  test('removes nothing that has changed since it was looked at', async () => {
    const engine = await opened()
    const handle = new DatabaseSync(file)
    fill(handle, 3)
    const at = toIso(clock.nowMs() - 8 * DAY_MS)
    const rows = JSON.stringify([
      [1, 'j0', at],
      [2, 'another id on this row', at],
      [3, 'j2', toIso(clock.nowMs())],
    ])
    assert.deepEqual(
      handle
        .prepare(REMOVE_FINISHED)
        .all({ rows })
        .map(({ id }) => id),
      ['j0'],
    )
    handle.exec(`UPDATE job_queue SET status = 'queued' WHERE id = 'j1'`)
    assert.deepEqual(handle.prepare(REMOVE_FINISHED).all({ rows: JSON.stringify([[2, 'j1', at]]) }), [])
    handle.close()
    await engine.close()
  })

  test('takes the history with the job, and leaves that of others', async () => {
    const engine = await opened()
    const handle = new DatabaseSync(file)
    fill(handle, 2)
    for (const id of ['j0', 'j1']) {
      handle.exec(`INSERT INTO job_events (job_id, at, name, attempt) VALUES ('${id}', '${toIso(0)}', 'failed', 1)`)
    }
    handle.prepare(`UPDATE job_queue SET completed_at = ? WHERE id = 'j1'`).run(toIso(clock.nowMs()))
    assert.equal(await sweepAll(engine), 1)
    assert.deepEqual(
      handle
        .prepare('SELECT job_id FROM job_events')
        .all()
        .map((row) => row.job_id),
      ['j1'],
    )
    handle.close()
    await engine.close()
  })
})

describe('space', () => {
  test('a file that Millrace made shrinks after a sweep, and the jobs that stay are whole', async () => {
    const engine = await opened()
    const handle = new DatabaseSync(file)
    assert.equal(pragma(handle, 'auto_vacuum'), 2)
    fill(handle, 400, 1, 'kept')
    fill(handle, 2_000, 8, JSON.stringify('x'.repeat(4_000)))
    fill(handle, 400, 1, 'kept')
    const before = statSync(file).size
    assert.equal(await sweepAll(engine, 250), 2_000)
    while (await engine.retention.compact()) {
      // Until there is nothing left to give.
    }
    handle.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    assert.ok(statSync(file).size < before / 5, `${statSync(file).size} of ${before} bytes`)
    assert.equal(handle.prepare(`SELECT count(*) AS count FROM job_queue WHERE payload = 'kept'`).get()?.count, 800)
    assert.equal(handle.prepare('PRAGMA integrity_check').get()?.integrity_check, 'ok')
    handle.close()
    await engine.close()
  })

  test('a file or a handle of somebody else keeps its mode, and compacting says that there is nothing to give', async () => {
    const theirs = new DatabaseSync(file)
    theirs.exec('CREATE TABLE note (text TEXT)')
    for (const database of [file, theirs]) {
      const engine = await opened(database)
      assert.equal(pragma(theirs, 'auto_vacuum'), 0)
      fill(theirs, 500)
      assert.equal(await sweepAll(engine), 500)
      assert.equal(await engine.retention.compact(), false)
      await engine.close()
    }
    const handle = new DatabaseSync(':memory:')
    const engine = await opened(handle)
    assert.equal(pragma(handle, 'auto_vacuum'), 0)
    await engine.close()
    theirs.close()
  })

  test('the doctor tells when free space is never given back, and how to change that', async () => {
    const theirs = new DatabaseSync(file)
    theirs.exec('CREATE TABLE note (text TEXT)')
    const engine = await opened()
    fill(theirs, 1_000, 8, 'x'.repeat(2_000))
    await sweepAll(engine)
    const connection = new Connection(theirs)
    assert.equal(judgeFreeSpace(readPages(connection)).severity, 'ok', 'a little does not matter')
    const finding = judgeFreeSpace(readPages(connection), 1_000)
    assert.deepEqual([finding.severity, finding.subject], ['warning', 'free space'])
    await engine.close()
    theirs.exec('PRAGMA auto_vacuum = INCREMENTAL; VACUUM')
    assert.match(finding.advice ?? '', /PRAGMA auto_vacuum = INCREMENTAL; VACUUM/)
    fill(theirs, 1_000, 8, 'x'.repeat(2_000))
    theirs.exec('DELETE FROM job_queue')
    assert.equal(judgeFreeSpace(readPages(new Connection(theirs)), 1_000).severity, 'ok', 'now retention gives it back')
    theirs.close()
  })
})

describe('jobs removed as they finish', () => {
  test('many of an old type go in batch, and the one that has just finished stays', async () => {
    const engine = await opened()
    const handle = new DatabaseSync(file)
    fill(handle, 250, 1)
    const settleOne = async (): Promise<number> => {
      await engine.enqueue([newJob({ type: 'a' })])
      const consumer = await engine.consume({ types: [{ type: 'a', leaseMs: 1_000 }], worker: 'host:1:1' })
      const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: NO_WAIT })
      assert.ok(lease)
      await consumer.settle([{ lease, outcome: { kind: 'complete', result: '1', durationMs: 1, keep: 1 } }])
      assert.equal((await engine.inspector.find([lease.job.id]))[0]?.state, 'completed')
      return (await engine.counts()).a?.completed ?? 0
    }
    assert.deepEqual([await settleOne(), await settleOne(), await settleOne()], [150, 50, 1])
    handle.close()
    await engine.close()
  })

  test('all that one call completes go with it, however many', async () => {
    const engine = await opened()
    await engine.enqueue(Array.from({ length: 400 }, () => newJob({ type: 'a' })))
    const consumer = await engine.consume({ types: [{ type: 'a', leaseMs: 1_000 }], worker: 'host:1:1' })
    const leases = await claimAll(consumer, 400)
    const outcome = { kind: 'complete', result: '1', durationMs: 1, keep: 3 } as const
    await consumer.settle(leases.map((lease) => ({ lease, outcome })))
    assert.equal((await engine.counts()).a?.completed, 3)
    await engine.close()
  })

  test('a lease that is lost beside them is told, and its job stays', async () => {
    const engine = await opened()
    await engine.enqueue([newJob({ type: 'a' }), newJob({ type: 'a' })])
    const consumer = await engine.consume({ types: [{ type: 'a', leaseMs: 1_000 }], worker: 'host:1:1' })
    const leases = await consumer.claim({ max: 2, waitMs: 0, signal: NO_WAIT })
    const [lost] = leases
    assert.ok(lost)
    await engine.controls.cancel(lost.job.id, { who: 'ann', reason: 'x' })
    const outcome = { kind: 'complete', result: '1', durationMs: 1, keep: 0 } as const
    const told = await consumer.settle(leases.map((lease) => ({ lease, outcome })))
    assert.deepEqual(
      told.map(({ lease, reason }) => [lease.job.id, reason]),
      [[lost.job.id, 'cancelled']],
    )
    assert.equal((await engine.inspector.list({ limit: 10 })).length, 1)
    await engine.close()
  })
})

describe('batch', () => {
  test('shrink when the work takes long and grow again when it does not', async () => {
    const batch = new AdaptiveBatch({ least: 10, most: 500, aimMs: 4 })
    const busy = (ms: number) => (): void => {
      const endMs = performance.now() + ms
      while (performance.now() < endMs) {
        // Takes its time.
      }
    }
    // Twelve are enough, unless the machine stands still within one.
    for (let turn = 0; turn < 1_000 && batch.size < 500; turn += 1) batch.timed(batch.size, () => {})
    assert.equal(batch.size, 500)
    batch.timed(500, busy(20))
    assert.ok(batch.size <= 100, String(batch.size))
    const before = batch.size
    batch.timed(3, () => {})
    assert.equal(batch.size, before, 'the rest of a step says little')
    for (let turn = 0; turn < 10; turn += 1) batch.timed(batch.size, busy(20))
    assert.equal(batch.size, 10)
  })
})
