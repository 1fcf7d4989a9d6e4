import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startRedis, withRedis } from '../servers/redis.ts'
import { runCli } from './in-process.ts'
import { jsonLines } from './run.ts'

test('millrace doctor examines Redis, and exits 1 while something is an error', { timeout: 300_000 }, async (t) => {
  const server = await startRedis()
  t.after(() => server.end())
  const { code, out } = await runCli(['doctor', '--json', '--engine', server.url])
  assert.equal(code, 1)
  const findings = jsonLines(out)
  for (const subject of ['server version', 'durability', 'eviction', 'memory', 'latency', 'clock']) {
    assert.ok(
      findings.some((finding) => finding.subject === subject),
      subject,
    )
  }
  const wrong = findings.filter(({ severity }) => severity === 'error')
  assert.deepEqual(
    wrong.map(({ subject, detail }) => `${subject}: ${detail}`),
    ['durability: neither an append-only file nor snapshots: a restart loses every job'],
  )
  await withRedis(server.url, (redis) => redis.config('SET', 'appendonly', 'yes'))
  assert.equal((await runCli(['doctor', '--engine', server.url])).code, 0)
  await server.kill()
  const away = await runCli(['doctor', '--engine', server.url])
  assert.equal(away.code, 1)
  assert.match(away.err, /no server answers there.*ERR_STORAGE_OPEN/)
})
