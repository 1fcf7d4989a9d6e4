import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from '../job/definition.ts'
import { openForTest } from '../testing/open-for-test.ts'

test('every event of one start tells the same facts of its job, made once and without the payload', async () => {
  await using t = await openForTest()
  const greet = defineJob({ type: 'greet', attempts: 2, run: () => 'hello' })
  const { events } = t.mill
  const told = Promise.all([events.next('job.claimed'), events.next('job.started'), events.next('job.settled')])
  const { id } = await t.mill.enqueue(greet, { secret: 'x-payload' }, { tenant: { orgId: 'acme' } })
  await t.mill.work([greet])
  const [claimed, started, settled] = await told
  const { runAtMs, createdAtMs, ...rest } = claimed.job
  assert.deepEqual(rest, { id, type: 'greet', priority: 5, attempts: 2, tenant: { orgId: 'acme' }, options: null })
  assert.deepEqual([runAtMs, createdAtMs], [t.clock.nowMs(), t.clock.nowMs()])
  assert.equal(started.job, claimed.job)
  assert.equal(settled.job, claimed.job)
})
