/** Sentinels: which server is the primary is theirs to say, also after it has changed. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { findProgram } from '../../../test/servers/apt.ts'
import { freePort } from '../../../test/servers/free-port.ts'
import { type OwnRedis, startRedis, withRedis } from '../../../test/servers/redis.ts'
import { defineJob, open } from '../../index.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-sentinel-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** A real one, which makes the replica the primary half a second after that is gone. Resolves when it knows both. */
async function startSentinel(t: TestContext, primary: OwnRedis): Promise<number> {
  const port = await freePort()
  const file = join(folder, 'sentinel.conf')
  const settings = ['down-after-milliseconds jobs 500', 'failover-timeout jobs 5000']
  const lines = [`port ${port}`, 'bind 127.0.0.1', `sentinel monitor jobs 127.0.0.1 ${primary.port} 1`]
  writeFileSync(file, [...lines, ...settings.map((setting) => `sentinel ${setting}`), ''].join('\n'))
  const program = findProgram('redis-server', 'redis-server') ?? ''
  const sentinel = spawn(program, [file, '--sentinel'], { stdio: ['ignore', 'pipe', 'ignore'], cwd: folder })
  t.after(async () => {
    sentinel.kill()
    await once(sentinel, 'exit')
  })
  await new Promise<void>((resolve) => {
    createInterface({ input: sentinel.stdout }).on('line', (line) => void (line.includes('+slave ') && resolve()))
  })
  return port
}

test('a Sentinel is refused by its address; an ioredis client that asks it is taken, and follows a failover', async (t) => {
  const primary = await startRedis()
  t.after(() => primary.end())
  const replica = await startRedis({ settings: { replicaof: `127.0.0.1 ${primary.port}` } })
  t.after(() => replica.end())
  const port = await startSentinel(t, primary)
  const refused = { code: 'ERR_STORAGE_OPEN', message: /this is a Sentinel.*'sentinels'/ }
  await assert.rejects(open(`redis://127.0.0.1:${port}`), refused)
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
  assert.deepEqual([...ran], ['before', 'after'])
  assert.equal(
    await withRedis(replica.url, (redis) => redis.info('replication').then((text) => /role:master/.test(text))),
    true,
  )
})
