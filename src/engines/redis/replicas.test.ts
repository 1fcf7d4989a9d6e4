/** `replicas=1`: an enqueue is acknowledged when a replica has it too. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { startRedis, withRedis } from '../../../test/servers/redis.ts'
import type { Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import { systemClock } from '../../time/clock.ts'

const settings = { clock: systemClock, migrate: false }

test('an enqueue that no replica confirms is rejected as unknown, and one that a replica has is acknowledged', async (t) => {
  const primary = await startRedis({ settings: { 'repl-diskless-sync-delay': '0' } })
  t.after(() => primary.end())
  const opened = async (timeoutMs: number): Promise<Engine> => {
    const engine = await openEngine(`${primary.url}?replicas=1&timeout=${timeoutMs}`, settings)
    t.after(() => engine.close())
    return engine
  }
  const [engine, patient] = [await opened(2_000), await opened(60_000)]
  const job = newJob()
  const unconfirmed = { code: 'ERR_STORAGE_FAILED', message: /only 0 of 1 replicas/ }
  await assert.rejects(engine.enqueue([job]), unconfirmed)
  const replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${primary.port}` } })
  t.after(() => replica.end())
  await withRedis(primary.url, async (redis) => {
    while ((await redis.wait(1, 1_000)) === 0);
  })
  const large = Array.from({ length: 1_500 }, () => newJob())
  assert.deepEqual((await patient.enqueue([job]))[0]?.status, 'duplicate')
  assert.equal((await patient.enqueue(large)).length, 1_500)
  const known = await withRedis(replica.url, (redis) =>
    redis.exists(...[job, ...large].map(({ id }) => `bull:greet:${id}`)),
  )
  assert.equal(known, 1_501)
  await replica.stop()
  await assert.rejects(engine.enqueue([newJob()]), unconfirmed)
})
