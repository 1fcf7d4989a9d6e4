import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newJob, scene } from '../../../test/bullmq/scene.ts'
import { newJobId } from '../../job/job.ts'

const by = { who: 'ann', reason: 'test' }
const never = new AbortController().signal

describe('looking at many jobs', { timeout: 300_000 }, () => {
  test('more than are gathered at once are paged through the index, by state and past what is gone', async (t) => {
    const { engine, inspector, redis, prefix } = await scene(t)
    const jobs = Array.from({ length: 1_300 }, (_, index) => newJob({ type: index % 2 === 0 ? 'mail' : 'other' }))
    await engine.enqueue(jobs)
    const consumer = await engine.consume({ types: [{ type: 'mail', leaseMs: 60_000 }], worker: 'w' })
    const [lease] = await consumer.claim({ max: 1, waitMs: 10_000, signal: never })
    assert.ok(lease)
    const ids = jobs
      .map(({ id }) => id)
      .sort()
      .reverse()
    const [deleted = ''] = ids
    await redis.del(`${prefix}:mail:${deleted}`, `${prefix}:other:${deleted}`)
    const listed: string[] = []
    for (;;) {
      const before = listed.at(-1)
      const page = await inspector.list({ limit: 400, ...(before !== undefined && { before }) })
      listed.push(...page.map(({ id }) => id))
      if (page.length < 400) break
    }
    assert.deepEqual(listed, ids.slice(1))
    assert.equal(await redis.zcard(`${prefix}::index`), 1_299, 'what is gone leaves the index')
    const running = await inspector.list({ limit: 5, state: 'in_progress' })
    assert.deepEqual(
      running.map(({ id }) => id),
      [lease.job.id],
    )
    const others = await inspector.list({ limit: 1_000, type: 'other', state: 'queued' })
    const expected = jobs.filter(({ type, id }) => type === 'other' && id !== deleted).length
    assert.equal(others.length, expected)
  })

  test('more ended jobs than are gathered at once are listed by how they ended', async (t) => {
    const { engine, inspector } = await scene(t)
    const jobs = Array.from({ length: 1_200 }, () => newJob({ type: 'mail', latest: { key: 'k', seq: null } }))
    await engine.enqueue(jobs)
    const newest = jobs.at(-1)?.id ?? ''
    assert.equal(await engine.controls?.cancel(newest, by), true)
    const ids = async (state: 'superseded' | 'cancelled' | 'dead_letter') =>
      (await inspector.list({ limit: 2_000, state })).map(({ id }) => id)
    assert.deepEqual(await ids('cancelled'), [newest])
    assert.equal((await ids('superseded')).length, 1_199)
    assert.deepEqual(await ids('dead_letter'), [])
  })

  test('dead letters that died at one moment are paged without a gap, ours and others', async (t) => {
    const { engine, letters, redis, prefix } = await scene(t)
    const ids = Array.from({ length: 23 }, (_, index) => (index % 3 === 0 ? newJobId(Date.now()) : `00${index}`))
    for (const id of ids) {
      await redis.hset(`${prefix}:mail:${id}`, { name: 'mail', data: '1', finishedOn: 1_000, failedReason: 'x' })
      await redis.zadd(`${prefix}:mail:failed`, 1_000, id)
    }
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      await redis.hset(`${prefix}:mail:${id}`, {
        name: 'mail',
        data: '1',
        finishedOn: 900 - id.charCodeAt(0),
        failedReason: 'x',
      })
      await redis.zadd(`${prefix}:mail:failed`, 900 - id.charCodeAt(0), id)
    }
    // Somebody deleted the hash of one.
    await redis.zadd(`${prefix}:mail:failed`, 1_000, 'gone')
    const seen: string[] = []
    let after: { readonly completedAtMs: number; readonly id: string } | undefined
    for (;;) {
      const page = await letters.list({ limit: 4, ...(after && { after }) })
      seen.push(...page.map(({ job }) => job.id))
      const last = page.at(-1)?.job
      if (last === undefined || page.length < 4) break
      after = { completedAtMs: last.completedAtMs ?? 0, id: last.id }
    }
    assert.equal(new Set(seen).size, 28)
    assert.equal(seen.length, 28)
    assert.ok(engine.retention)
    assert.ok((await engine.retention.usedBytes()) > 28 * 50)
  })

  test('a job whose fields are nonsense can be looked at, cancelled and removed', async (t) => {
    const { engine, inspector, letters, redis, prefix } = await scene(t)
    for (const [id, set] of [
      ['1', 'wait'],
      ['2', 'failed'],
    ] as const) {
      const fields = { name: 'mail', data: 'not json', opts: '{', mr: '[', timestamp: 'x', priority: 'y', atm: 'z' }
      await redis.hset(`${prefix}:mail:${id}`, fields)
      if (set === 'wait') await redis.lpush(`${prefix}:mail:wait`, id)
      else await redis.zadd(`${prefix}:mail:failed`, 5, id)
    }
    assert.deepEqual(
      (await inspector.list({ limit: 10 })).map(({ id }) => id),
      ['mail#2', 'mail#1'],
    )
    assert.equal(await engine.controls?.cancel('mail#1', by), true)
    assert.deepEqual(await letters.remove(['mail#2'], by), [true])
    assert.equal((await letters.audit({ limit: 1 }))[0]?.jobId, 'mail#2')
  })
})
