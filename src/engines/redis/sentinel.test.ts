/** Sentinels: which server is the primary is theirs to say, also after it has changed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Redis } from 'ioredis'
import { startRedis, withRedis } from '../../../test/servers/redis.ts'
import { startSentinels } from '../../../test/servers/redis-sentinel.ts'
import { defineJob, open } from '../../index.ts'

test('a Sentinel is refused by its plain address; a URL or an ioredis client that asks it follows a failover', async (t) => {
  const primary = await startRedis()
  t.after(() => primary.end())
  const replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${primary.port}` } })
  t.after(() => replica.end())
  const sentinels = await startSentinels(primary)
  t.after(() => sentinels.end())
  const [port = 0] = sentinels.ports
  const refused = { code: 'ERR_STORAGE_OPEN', message: /this is a Sentinel.*redis\+sentinel:.*'sentinels'/ }
  await assert.rejects(open(`redis://127.0.0.1:${port}`), refused)
  await assert.rejects(open(`redis+sentinel://127.0.0.1:${port}?name=other`), {
    code: 'ERR_STORAGE_OPEN',
    message: /know no primary of this name/,
  })
  const byUrl = await open(sentinels.url('bull'))
  t.after(() => byUrl.close())
  const client = new Redis({ sentinels: [{ host: '127.0.0.1', port }], name: 'jobs', lazyConnect: true })
  t.after(() => client.disconnect())
  const mill = await open(client)
  t.after(() => mill.close())
  const ran = new Set<unknown>()
  const job = defineJob({ type: 'followed', run: async ({ payload }) => void ran.add(payload) })
  await mill.work([job])
  const before = await mill.enqueue(job, 'before')
  await mill.result(before.id, { timeout: '30s' })
  await withRedis(primary.url, (redis) => redis.wait(1, 5_000))
  await primary.kill()
  // Calls are rejected until the replica has become the primary, so the caller repeats them.
  const again = async (): Promise<{ readonly id: string }> => {
    try {
      return await mill.enqueue(job, 'after', { key: 'once' })
    } catch {
      return again()
    }
  }
  const { id } = await again()
  await mill.result(id, { timeout: '60s' })
  assert.equal((await byUrl.job(id))?.state, 'completed')
  assert.deepEqual([...ran], ['before', 'after'])
  assert.equal(
    await withRedis(replica.url, (redis) => redis.info('replication').then((text) => /role:master/.test(text))),
    true,
  )
})
