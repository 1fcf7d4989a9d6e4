import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { type Mill, open } from 'millrace'
import { z } from 'zod'
import { JOBS, jsonLines, millrace, startMillrace, temporaryFolder, until } from './run.ts'

async function store(t: TestContext): Promise<{ folder: string; file: string; url: string; mill: Mill }> {
  const folder = await temporaryFolder(t)
  const file = join(folder, 'jobs.db')
  const url = `sqlite:${file}`
  const { greet, doomed, untilFile, stray, bomb } = await import('./fixtures/jobs.ts')
  const mill = await open(url, { jobs: [greet, doomed, untilFile, stray, bomb] })
  t.after(() => mill.close())
  return { folder, file, url, mill }
}

const stateOf = async (mill: Mill, id: string) => (await mill.job(id))?.state
/** A process that runs the job may have to start first. */
const resultOf = (mill: Mill, id: string) => mill.result(id, { timeout: '2m' })

describe('millrace work', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    // A05 B08 B131 B132 B134 B137 B141 I8
    it(`finishes what runs on ${signal}, takes nothing new, and exits 0`, async (t) => {
      const { folder, file, url, mill } = await store(t)
      const go = join(folder, 'go')
      const { id } = await mill.enqueue('until-file', { file: go })
      const worker = startMillrace(t, ['work', JOBS, '--engine', url])
      await worker.said('Job started')
      worker.child.kill(signal)
      await worker.said('Signal received')
      const late = await mill.enqueue('greet', { name: 'late' })
      await writeFile(go, '')
      const { code, out, err } = await worker.ended
      assert.equal(code, 0, err)
      assert.equal(err, '')
      assert.equal(await stateOf(mill, id), 'completed')
      assert.equal(await stateOf(mill, late.id), 'queued')
      assert.equal(jsonLines(out).at(-1)?.msg, 'Worker stopped')
      await mill.close()
      const database = new DatabaseSync(file)
      assert.deepEqual({ ...database.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
      database.exec('BEGIN IMMEDIATE; ROLLBACK')
      database.close()
    })
  }

  // A145
  it('serves its metrics with --metrics-port, under the given prefix', async (t) => {
    const { url, mill } = await store(t)
    const { id } = await mill.enqueue('greet', { name: 'Ada' })
    const metrics = ['--metrics-port', '0', '--metrics-prefix', 'ruvbot_worker_']
    const worker = startMillrace(t, ['work', JOBS, ...metrics, '--engine', url])
    await resultOf(mill, id)
    await worker.said('Metrics are served')
    const address = String(jsonLines(worker.output).find(({ msg }) => msg === 'Metrics are served')?.url)
    const text = async (): Promise<string> => (await fetch(address)).text()
    await until(async () => /^ruvbot_worker_jobs_total\{type="greet",status="completed",.*\} 1$/m.test(await text()))
    assert.equal((await fetch(address.replace('/metrics', '/'))).status, 404)
    assert.equal((await fetch(`${address}?target=a`)).status, 200, 'Prometheus can add parameters')
    // Another worker beside it needs a port of its own.
    const taken = await millrace(['work', JOBS, '--metrics-port', new URL(address).port, '--engine', url])
    assert.equal(taken.code, 2)
    assert.match(taken.err, /port \d+ of 127\.0\.0\.1 is in use; choose another one/)
    worker.child.kill('SIGTERM')
    assert.equal((await worker.ended).code, 0)
  })

  // X119
  it('starts a job that has waited long before newer ones, with --ageing', async (t) => {
    const { url, mill } = await store(t)
    const fresh = await mill.enqueue('greet', { name: 'new' }, { priority: 3 })
    const old = await mill.enqueue('greet', { name: 'old' }, { priority: 10, at: new Date(Date.now() - 85 * 60_000) })
    const worker = startMillrace(t, ['work', JOBS, '--ageing', '10m', '--concurrency', '1', '--engine', url])
    await Promise.all([fresh, old].map(({ id }) => resultOf(mill, id)))
    worker.child.kill('SIGTERM')
    const { out } = await worker.ended
    const started = jsonLines(out).filter(({ msg }) => msg === 'Job started')
    assert.deepEqual(
      started.map((line) => line.job_id),
      [old.id, fresh.id],
    )
  })

  // B133 B135 I8
  it('gives back what does not finish in time, without using an attempt, also when npm echoes the signal', async (t) => {
    const { folder, url, mill } = await store(t)
    const { id } = await mill.enqueue('until-file', { file: join(folder, 'never') })
    const worker = startMillrace(t, ['work', JOBS, '--drain', '300ms', '--engine', url])
    await worker.said('Job started')
    // Both at once, and of two kinds: two of one kind may arrive as one, and one that is late is no echo.
    worker.child.kill('SIGINT')
    worker.child.kill('SIGTERM')
    assert.equal((await worker.ended).code, 0)
    const view = await mill.job(id)
    assert.partialDeepStrictEqual(view, { state: 'queued', attempt: 0, leaseOwner: null, leaseUntilMs: null })
  })

  it('stops at once on a second signal', async (t) => {
    const { folder, url, mill } = await store(t)
    await mill.enqueue('until-file', { file: join(folder, 'never') })
    const worker = startMillrace(t, ['work', JOBS, '--drain', '10m', '--engine', url])
    await worker.said('Job started')
    worker.child.kill('SIGTERM')
    await worker.said('Signal received')
    const stoppedAt = performance.now()
    // The echo of a signal is ignored for a second; after it, the next one counts.
    await until(() => {
      worker.child.kill('SIGTERM')
      return worker.child.exitCode !== null || worker.child.signalCode !== null
    }, 120_000)
    assert.equal((await worker.ended).code, 1)
    assert.ok(performance.now() - stoppedAt < 300_000, 'well before the drain of 10 min')
  })

  it('is told of a cancellation by another process', async (t) => {
    const { folder, url, mill } = await store(t)
    const { id } = await mill.enqueue('until-file', { file: join(folder, 'never') })
    const worker = startMillrace(t, ['work', JOBS, '--engine', url])
    await worker.said('Job started')
    assert.equal(await mill.cancel(id), true)
    await worker.said('cancelled')
    worker.child.kill('SIGTERM')
    assert.equal((await worker.ended).code, 0)
    assert.equal((await mill.job(id))?.state, 'cancelled')
  })

  it('survives an unhandled rejection and redacts it', async (t) => {
    const { url, mill } = await store(t)
    await mill.enqueue('stray', {})
    const worker = startMillrace(t, ['work', JOBS, '--engine', url])
    await worker.said('Unhandled promise rejection')
    const { id } = await mill.enqueue('greet', { name: 'Ada' })
    assert.deepEqual(await resultOf(mill, id), { greeting: 'Hello Ada' })
    worker.child.kill('SIGTERM')
    const { code, out } = await worker.ended
    assert.equal(code, 0)
    assert.match(out, /forgotten/)
    assert.doesNotMatch(out, /hunter2/)
  })

  it('drains and fails when an exception escapes every handler', async (t) => {
    const { folder, url, mill } = await store(t)
    const { id } = await mill.enqueue('until-file', { file: join(folder, 'never') })
    const worker = startMillrace(t, ['work', JOBS, '--drain', '100ms', '--engine', url])
    await worker.said('Job started')
    await mill.enqueue('bomb', {})
    const { code, err } = await worker.ended
    assert.equal(code, 1)
    assert.match(err, /^error: thrown from a timer[^\n]*\n$/)
    assert.equal(await stateOf(mill, id), 'queued')
  })

  // A14 B164
  it('works only the types it is told to', async (t) => {
    const { url, mill } = await store(t)
    const other = await mill.enqueue('doomed', {}, { priority: 1 })
    const { id } = await mill.enqueue('greet', { name: 'Ada' })
    const worker = startMillrace(t, ['work', JOBS, '--types', 'greet', '--engine', url])
    await resultOf(mill, id)
    worker.child.kill('SIGTERM')
    await worker.ended
    assert.equal(await stateOf(mill, other.id), 'queued')
  })

  // B20 B22 B29 B30
  it('runs a row that another program inserted with the canonical columns only', async (t) => {
    const { file, url, mill } = await store(t)
    const now = new Date().toISOString()
    const row = ['01ARZ3NDEKTSV4RRFFQ69G5FAV', 'greet', now, '{"name":"Python"}', now, now]
    await insertFromOutside(file, row)
    const worker = startMillrace(t, ['work', JOBS, '--engine', url])
    assert.deepEqual(await resultOf(mill, '01ARZ3NDEKTSV4RRFFQ69G5FAV'), { greeting: 'Hello Python' })
    // And one inserted while the worker waits: it is woken, not restarted.
    await insertFromOutside(file, ['01ARZ3NDEKTSV4RRFFQ69G5FAW', ...row.slice(1)])
    assert.deepEqual(await resultOf(mill, '01ARZ3NDEKTSV4RRFFQ69G5FAW'), { greeting: 'Hello Python' })
    worker.child.kill('SIGTERM')
    assert.equal((await worker.ended).code, 0)
  })
})

const INSERT =
  'INSERT INTO job_queue (id, type, scheduled_at, payload, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)'

const PYTHON = `
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=10)
connection.execute(sys.argv[2], sys.argv[3:])
connection.commit()
connection.close()`

const NODE = `
const { DatabaseSync } = require('node:sqlite')
const [file, sql, ...row] = process.argv.slice(1)
const database = new DatabaseSync(file, { timeout: 10000 })
database.prepare(sql).run(...row)
database.close()`

/** By Python where there is one, else by a Node process that knows nothing of Millrace. */
async function insertFromOutside(file: string, row: readonly string[]): Promise<void> {
  const [program, script] = hasPython() ? ['python3', ['-c', PYTHON]] : [process.execPath, ['-e', NODE, '--']]
  await promisify(execFile)(program, [...script, file, INSERT, ...row])
}

function hasPython(): boolean {
  try {
    execFileSync('python3', ['-c', 'import sqlite3'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

describe('millrace start', () => {
  // I6 B139
  it('without jobs is a reaper: it recovers what a killed worker left, and stops on SIGTERM', async (t) => {
    const { folder, url, mill } = await store(t)
    const { id } = await mill.enqueue('until-file', { file: join(folder, 'never') }, { attempts: 1 })
    const doomedWorker = await mill.engine.consume({
      types: [{ type: 'until-file', leaseMs: 50 }],
      worker: 'host:1:dead',
    })
    const signal = new AbortController().signal
    assert.equal((await doomedWorker.claim({ max: 1, waitMs: 1_000, signal })).length, 1)
    const reaper = startMillrace(t, ['start', '--no-http', '--reap', '50ms', '--engine', url])
    await reaper.said('Keeper started')
    const view = await mill.engine.inspector?.waitFor(id, { waitMs: 60_000, signal })
    assert.equal(view?.state, 'dead_letter')
    assert.equal(view?.error?.code, 'ERR_LEASE_EXPIRED')
    reaper.child.kill('SIGTERM')
    assert.equal((await reaper.ended).code, 0)
  })

  it('with jobs is a worker too', async (t) => {
    const { url, mill } = await store(t)
    const { id } = await mill.enqueue('greet', { name: 'Ada' })
    const all = startMillrace(t, ['start', JOBS, '--port', '0', '--engine', url])
    assert.deepEqual(await resultOf(mill, id), { greeting: 'Hello Ada' })
    all.child.kill('SIGINT')
    assert.equal((await all.ended).code, 0)
  })

  it('serves the HTTP API of what it runs by default', async (t) => {
    const { url, mill } = await store(t)
    const all = startMillrace(t, ['start', JOBS, '--port', '0', '--engine', url, '--json'])
    await all.said(/"url":"[^"]+"/)
    const address = /"url":"([^"]+)"/.exec(all.output)?.[1]
    const answer = await fetch(`${address}/api/v1/jobs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'greet', payload: { name: 'Ada' } }),
    })
    assert.equal(answer.status, 201)
    const { id } = z.object({ id: z.string() }).parse(await answer.json())
    assert.deepEqual(await resultOf(mill, id), { greeting: 'Hello Ada' })
    all.child.kill('SIGTERM')
    assert.equal((await all.ended).code, 0)
    await assert.rejects(fetch(`${address}/health`))
  })
})
