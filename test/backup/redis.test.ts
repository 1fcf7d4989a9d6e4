/** The snapshot that docs/operating-redis.md shows, restored as it says. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../cli/run.ts'
import { findProgram } from '../servers/apt.ts'
import { startRedis, withRedis } from '../servers/redis.ts'
import { busyStore, checkRestored, workOn } from './scene.ts'

test('a snapshot of Redis while workers run loses nothing, and its leased jobs are recovered', async (t) => {
  const folder = await temporaryFolder(t)
  const server = await startRedis({ aof: 'everysec' })
  t.after(() => server.end())
  const scene = await busyStore(server.url)
  try {
    const program = findProgram('redis-cli', 'redis-tools') ?? 'redis-cli'
    execFileSync(program, ['-p', String(server.port), '--rdb', join(folder, 'dump.rdb')], { stdio: 'ignore' })
    await workOn(scene)
  } finally {
    await scene.end()
  }
  await server.end()
  const restored = await startRedis({ aof: 'off', settings: { dir: folder } })
  t.after(() => restored.end())
  await withRedis(restored.url, (redis) => redis.config('SET', 'appendonly', 'yes'))
  await checkRestored(restored.url, scene)
})
