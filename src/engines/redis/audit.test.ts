import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { startRedis } from '../../../test/servers/redis.ts'
import { open } from '../../client/mill.ts'
import { openDesk } from '../../desk/desk.ts'

const by = { who: 'ann', reason: 'a test' }

test('the stored audit has the error of a letter, and neither stacks nor payloads', async (t) => {
  const server = await startRedis()
  const mill = await open(server.url)
  const redis = new Redis(server.url)
  t.after(async () => {
    redis.disconnect()
    await mill.close()
    await server.end()
  })
  const { engine } = mill
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
