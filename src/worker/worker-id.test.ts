import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { open } from '../client/mill.ts'
import { presenceOf } from '../engine/capability-checks.ts'
import type { AtWork, Beat } from '../engine/presence.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'

const job = defineJob({ type: 'a', run: () => null })
/** No process has so high a number. */
const DEAD_PID = 2 ** 22 + 1

async function idBeside(t: { after(run: () => Promise<void>): void }, work: Partial<AtWork>, said: Partial<Beat> = {}) {
  const clock = new TestClock()
  const mill = await open('memory:', { clock })
  t.after(async () => {
    const closed = mill.close()
    await clock.advance('1m')
    await closed
  })
  const other = { host: 'elsewhere', pid: 1, startedAtMs: 0, concurrency: 1, running: 0, jobs: [], ...work }
  const beat: Beat = {
    ...{ type: 'a', instance: 'pod', status: 'RUNNING', atMs: clock.nowMs(), lastJobAtMs: null, lag: null },
    stoppingSinceMs: null,
    work: other,
    ...said,
  }
  await presenceOf(mill.engine).beat([beat], 30_000)
  return (await mill.work([job], { id: 'pod' })).id
}

test('an id is another worker’s while that one is heard from another host', async (t) => {
  assert.match(await idBeside(t, {}), /^pod:[0-9a-f]{8}$/)
})

test('a worker that comes back after a crash has its id again', async (t) => {
  const cases: readonly (readonly [string, Partial<AtWork>, Partial<Beat>])[] = [
    ['its process is gone', { host: hostname(), pid: DEAD_PID }, {}],
    ['a container has the same number each time', { host: hostname(), pid: process.pid, process: 'before' }, {}],
    ['it stops and says so', {}, { status: 'SHUTTING_DOWN' }],
    ['it has not been heard for longer than a worker waits between two beats', {}, { atMs: -60_000 }],
  ]
  for (const [why, work, said] of cases) assert.equal(await idBeside(t, work, said), 'pod', why)
})

test('an id is another’s whose process runs on this host', async (t) => {
  assert.match(await idBeside(t, { host: hostname(), pid: process.ppid }), /^pod:/)
})
