import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { openEngine } from '../../engine/open.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { systemClock } from '../../time/clock.ts'

const files = tempFiles()
const never = new AbortController().signal
const HOUR_MS = 3_600_000

describe('a clock that is set', () => {
  test('is named by the doctor', async () => {
    const clock = new TestClock()
    const engine = await openEngine(`sqlite:${files.next()}`, { clock, migrate: true })
    await engine.enqueue([newJob()])
    await clock.advance('2h')
    clock.step(90_000)
    await engine.enqueue([newJob()])
    const findings = (await engine.diagnose?.()) ?? []
    const found = findings.find(({ subject }) => subject === 'clock')
    assert.equal(found?.severity, 'warning')
    assert.match(found?.detail ?? '', /set forward by/)
    await engine.close()
  })

  test('moves the columns that other programs read, once for all views', async () => {
    const clock = new TestClock()
    const file = files.next()
    const engines = [
      await openEngine(`sqlite:${file}`, { clock, migrate: true }),
      await openEngine(`sqlite:${file}`, { clock, migrate: true }),
    ]
    const [one, other] = engines
    assert.ok(one && other)
    await one.enqueue([newJob()])
    await other.enqueue([newJob({ delayMs: 10 * HOUR_MS })])
    const consumer = await one.consume({ types: [{ type: newJob().type, leaseMs: 60_000 }], worker: 'w' })
    const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: never })
    assert.ok(lease)
    clock.step(-HOUR_MS)
    for (const engine of engines) await engine.records?.put('worker', [], 1)
    const rows = new DatabaseSync(file, { readOnly: true })
    const row = rows.prepare(`SELECT lease_until FROM job_queue WHERE status = 'in_progress'`).get()
    assert.equal(row?.lease_until, new Date(clock.nowMs() + 60_000).toISOString())
    rows.close()
    for (const engine of engines) await engine.close()
  })

  test('after a start of the machine, a lease that was stored in the future ends within its length', async () => {
    const file = files.next()
    const before = await openEngine(`sqlite:${file}`, { clock: systemClock, migrate: true })
    await before.enqueue([newJob()])
    const holder = await before.consume({ types: [{ type: newJob().type, leaseMs: 1_000 }], worker: 'w' })
    assert.equal((await holder.claim({ max: 1, waitMs: 0, signal: never })).length, 1)
    await before.close()
    const rows = new DatabaseSync(file)
    rows.exec(`UPDATE millrace_clock SET timeline = 'an earlier start'`)
    rows.exec(`UPDATE job_queue SET lease_until = '2199-01-01T00:00:01.000Z', updated_at = '2199-01-01T00:00:00.000Z'`)
    rows.close()
    const engine = await openEngine(`sqlite:${file}`, { clock: systemClock, migrate: true })
    const reaper = await engine.consume({ types: 'every', worker: 'r' })
    const reaped = await reaper.claim({ max: 1, waitMs: 20_000, signal: never, from: 'expired' })
    assert.equal(reaped.length, 1)
    await engine.close()
  })
})
