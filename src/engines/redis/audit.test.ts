import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { startRedis } from '../../../test/servers/redis.ts'
import { open } from '../../client/mill.ts'
import { openDesk } from '../../desk/desk.ts'

async function opened(t: TestContext) {
  const server = await startRedis()
  const mill = await open(server.url)
  const redis = new Redis(server.url)
  t.after(async () => {
    redis.disconnect()
    await mill.close()
    await server.end()
  })
  return { mill, engine: mill.engine, redis }
}

const by = { who: 'ann', reason: 'a test' }

test('the stored audit has the error of a letter, and neither stacks nor payloads', async (t) => {
  const { mill, engine, redis } = await opened(t)
  const job = newJob({ type: 'letter', payload: '{"a":"payload-text"}' })
  await engine.enqueue([job])
  const consumer = await engine.consume({ types: [{ type: 'letter', leaseMs: 60_000 }], worker: 'w:1:1' })
  const [lease] = await consumer.claim({ max: 1, waitMs: 5_000, signal: new AbortController().signal })
  assert.ok(lease)
  const error = { name: 'Odd', code: null, message: 'no "invoice"/41', stack: 'stack-text at run' }
  await consumer.settle([{ lease, outcome: { kind: 'dead', error } }])
  await consumer.close()
  const desk = openDesk(mill)
  await desk.discard({ ids: [job.id] }, by)
  await desk.undo(job.id, by)
  await desk.replay(job.id, by, { payload: { a: 'edited-text' } })
  const [key = '', ...more] = await redis.keys('*:audit')
  assert.deepEqual(more, [])
  const stored = (await redis.lrange(key, 0, -1)).join('\n')
  assert.doesNotMatch(stored, /stack-text|payload-text|edited-text/)
  const [replay] = await desk.audit({ jobId: job.id, action: 'replay' })
  assert.deepEqual(replay?.before.error, { name: 'Odd', code: null, message: 'no "invoice"/41' })
})

test('erasing many jobs reads the audit once', async (t) => {
  const { mill, engine, redis } = await opened(t)
  const jobs = Array.from({ length: 20 }, () => newJob({ type: 'letter' }))
  await engine.enqueue(jobs)
  const consumer = await engine.consume({ types: [{ type: 'letter', leaseMs: 60_000 }], worker: 'w:1:1' })
  const leases = await consumer.claim({ max: 20, waitMs: 5_000, signal: new AbortController().signal })
  const error = { name: 'Odd', code: null, message: 'no', stack: null }
  await consumer.settle(leases.map((lease) => ({ lease, outcome: { kind: 'dead', error } })))
  await consumer.close()
  const ids = jobs.map(({ id }) => id)
  await openDesk(mill).discard({ ids }, by)
  const note = (subject: string) => mill.note({ ...by, action: 'forget', subject, before: {} })
  await Promise.all(Array.from({ length: 1_000 }, (_, n) => note(String(n))))
  const reads = async (): Promise<number> =>
    Number(/cmdstat_lrange:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
  const before = await reads()
  assert.deepEqual(await engine.deadLetters?.remove([...ids, ...ids.slice(0, 1)], by, { erase: true }), [
    ...ids.map(() => true),
    false,
  ])
  // Six pages, and one for what each job adds.
  const done = (await reads()) - before
  assert.ok(done <= 6 + ids.length, `${done} reads`)
  for (const { action, before: view } of await openDesk(mill).audit({ jobId: ids[7] ?? '' }))
    assert.deepEqual(view, action === 'erase' ? { state: 'discarded', entries: 1 } : { erased: true })
})
