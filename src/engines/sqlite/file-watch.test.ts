import assert from 'node:assert/strict'
import { copyFileSync, renameSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { open } from '../../client/mill.ts'
import { openEngine } from '../../engine/open.ts'
import { defineJob } from '../../job/definition.ts'
import { systemClock } from '../../time/clock.ts'

const SETTINGS = { clock: systemClock, migrate: true }
const files = tempFiles()
const never = new AbortController().signal

/** What a call rejects with, as soon as it does; it is made again and again, for at most five seconds. */
async function refusal(call: () => Promise<unknown>): Promise<string> {
  const untilMs = systemClock.monotonicMs() + 5_000
  for (;;) {
    try {
      await call()
    } catch (error) {
      return error instanceof Error ? String(Reflect.get(error, 'code')) : String(error)
    }
    assert.ok(systemClock.monotonicMs() < untilMs, 'the call still succeeds')
    await systemClock.sleep(50)
  }
}

describe('a file that is no longer the one that was opened', () => {
  const losses: Readonly<Record<string, (file: string) => void>> = {
    deleted: (file) => rmSync(file),
    'replaced by a copy': (file) => {
      copyFileSync(file, `${file}.copy`)
      renameSync(`${file}.copy`, file)
    },
    'without its write-ahead log': (file) => rmSync(`${file}-wal`),
    'with another index of the log': (file) => {
      copyFileSync(`${file}-shm`, `${file}.copy`)
      renameSync(`${file}.copy`, `${file}-shm`)
    },
  }
  for (const [name, lose] of Object.entries(losses)) {
    test(`${name}: nothing is stored, claimed or called healthy`, async () => {
      const file = files.next()
      const engine = await openEngine(`sqlite:${file}`, SETTINGS)
      await engine.enqueue([newJob()])
      const consumer = await engine.consume({ types: [{ type: 'other', leaseMs: 1_000 }], worker: 'one' })
      lose(file)
      assert.equal(await refusal(() => engine.enqueue([newJob()])), 'ERR_STORAGE_REPLACED')
      // One that finds nothing to claim only reads, and must notice too.
      assert.equal(await refusal(() => consumer.claim({ max: 1, waitMs: 0, signal: never })), 'ERR_STORAGE_REPLACED')
      assert.equal(await refusal(() => engine.ping()), 'ERR_STORAGE_REPLACED')
      await engine.close()
    })
  }

  test('an idle worker tells it', async () => {
    const file = files.next()
    const mill = await open(`sqlite:${file}`)
    await mill.work([defineJob({ type: 'idle', run: () => {} })], { poll: '100ms' })
    const told = mill.events.next(
      'worker.error',
      ({ error }) => Reflect.get(Object(error), 'code') === 'ERR_STORAGE_REPLACED',
    )
    rmSync(file)
    assert.equal((await told).during, 'claim')
    await mill.close()
  })
})

test('a newer schema ends claims and enqueues of a running process, and lets it settle what it holds', async () => {
  const file = files.next()
  const engine = await openEngine(`sqlite:${file}`, SETTINGS)
  await engine.enqueue([newJob(), newJob()])
  const consumer = await engine.consume({ types: [{ type: newJob().type, leaseMs: 60_000 }], worker: 'one' })
  const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: never })
  assert.ok(lease)
  const other = new DatabaseSync(file)
  other.exec(`INSERT INTO millrace_schema (version, name, applied_at) VALUES (99, 'later', '2026-01-01T00:00:00.000Z')`)
  assert.equal(await refusal(() => engine.enqueue([newJob()])), 'ERR_SCHEMA_NEWER')
  assert.equal(await refusal(() => consumer.claim({ max: 1, waitMs: 0, signal: never })), 'ERR_SCHEMA_NEWER')
  assert.deepEqual(await consumer.renew([lease], 60_000), [])
  const outcome = { kind: 'complete', result: 'null', durationMs: 1 } as const
  assert.deepEqual(await consumer.settle([{ lease, outcome }]), [])
  other.exec('DELETE FROM millrace_schema WHERE version = 99')
  other.close()
  await engine.enqueue([newJob()])
  await engine.close()
})
