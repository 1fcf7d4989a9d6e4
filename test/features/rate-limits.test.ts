import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { busiestWindow } from '../../conformance/crew.ts'
import { open } from '../../src/client/mill.ts'
import { defineJob } from '../../src/job/definition.ts'
import { systemClock } from '../../src/time/clock.ts'
import { prefixUrl, redisServer } from '../servers/redis.ts'

const [MAX, PER_MS, COUNT] = [10, 1_000, 25]

/** Three workers on the real clock; every handler takes down when it started, and then blocks for a moment. */
async function startsOf(t: TestContext, target: () => Parameters<typeof open>[0]): Promise<readonly number[]> {
  const mills = await Promise.all([0, 1, 2].map(() => open(target())))
  t.after(() => Promise.all(mills.map((mill) => mill.close())))
  const startsMs: number[] = []
  const all = Promise.withResolvers<void>()
  const job = defineJob({
    type: 'limited',
    limit: { max: MAX, per: PER_MS },
    run: () => {
      startsMs.push(systemClock.nowMs())
      for (const untilMs = performance.now() + 10; performance.now() < untilMs; );
      if (startsMs.length === COUNT) all.resolve()
    },
  })
  const [first] = mills
  await first?.enqueueMany(
    job,
    Array.from({ length: COUNT }, (_, n) => n),
  )
  await Promise.all(mills.map((mill) => mill.work([job], { concurrency: 20 })))
  await all.promise
  return startsMs
}

function isKept(startsMs: readonly number[]): void {
  const told = startsMs.map((atMs) => atMs - (startsMs[0] ?? 0)).join(' ')
  assert.ok(busiestWindow(startsMs, PER_MS) <= MAX, `starts at ${told} ms`)
}

test('SQLite: no second holds more than ten starts', { timeout: 120_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-limits-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  isKept(await startsOf(t, () => `sqlite:${join(folder, 'jobs.db')}`))
})

test('Redis: no second holds more than ten starts', { timeout: 120_000 }, async (t) => {
  const { url } = prefixUrl(await redisServer())
  isKept(await startsOf(t, () => url))
})
