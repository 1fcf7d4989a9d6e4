/** A worker of BullMQ's own beside ours on one queue, and what its stalled check does to our jobs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineJob } from 'millrace'
import { until } from '../bullmq/plain-queue.ts'
import { besideBullmq, over } from './beside-bullmq.ts'

describe('a BullMQ worker beside ours', { timeout: 300_000 }, () => {
  test('shares the work: every job of either producer runs once', async (t) => {
    const { mill, queue, worker } = await besideBullmq(t)
    const foreign = queue('mail')
    const ran = { ours: [] as unknown[], theirs: [] as unknown[] }
    // Nobody goes on before both are at work: else the faster one might do it all.
    const bothAtWork = Promise.withResolvers<void>()
    const atWork = () => {
      if (ran.ours.length > 0 && ran.theirs.length > 0) bothAtWork.resolve()
      return bothAtWork.promise
    }
    const mail = defineJob({
      type: 'mail',
      run: async ({ payload }) => {
        ran.ours.push(payload)
        await atWork()
      },
    })
    const numbers = Array.from({ length: 200 }, (_, index) => index)
    for (const n of numbers) await mill.enqueue(mail, n, { priority: 1 + (n % 10) })
    await foreign.addBulk(numbers.map((n) => ({ name: 'x', data: 200 + n, opts: { priority: n % 4 } })))
    worker(
      'mail',
      async (data) => {
        ran.theirs.push(data)
        await atWork()
      },
      { concurrency: 4 },
    )
    await mill.work([mail], { concurrency: 4 })
    await until(async () => (await foreign.getJobCounts('completed')).completed === 400)
    assert.deepEqual(
      [...ran.ours, ...ran.theirs].map(Number).toSorted((a, b) => a - b),
      [...Array(400).keys()],
    )
    assert.ok(ran.ours.length > 0 && ran.theirs.length > 0, `${ran.ours.length} and ${ran.theirs.length}`)
    assert.equal((await mill.counts()).mail?.completed, 400)
  })

  test('leaves a long job of ours alone while its lease is renewed', async (t) => {
    const { mill, queue, worker } = await besideBullmq(t)
    let runs = 0
    const slow = defineJob({
      type: 'mail',
      lease: '5s',
      run: async () => {
        runs += 1
        await new Promise((resolve) => setTimeout(resolve, 6_500))
        return 'done'
      },
    })
    await mill.work([slow])
    const { id } = await mill.enqueue(slow, {})
    await until(async () => runs === 1)
    worker('mail', async () => 'stolen', { stalledInterval: 100 })
    const view = await over(mill, id)
    assert.deepEqual([view.result, view.attempt, runs], ['done', 1, 1])
    assert.deepEqual(await queue('mail').getJobCounts('wait', 'active'), { wait: 0, active: 0 })
  })

  test('that finds a job of a dead worker of ours hands it back, and the start it had counts', async (t) => {
    const { mill, redis, prefix, worker, queue } = await besideBullmq(t)
    const consumer = await mill.engine.consume({ types: [{ type: 'mail', leaseMs: 60_000 }], worker: 'dead' })
    const mail = defineJob({ type: 'mail', attempts: 5, run: ({ job }) => job.attempt })
    const { id } = await mill.enqueue(mail, {})
    const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
    assert.ok(lease)
    await redis.del(`${prefix}:mail:${id}:lock`)
    const other = worker('mail', async () => {}, { stalledInterval: 50, autorun: false })
    await queue('mail').pause()
    void other.run()
    await until(async () => (await queue('mail').getJobState(id)) !== 'active')
    await other.close(true)
    await queue('mail').resume()
    await mill.work([mail])
    const view = await over(mill, id)
    assert.deepEqual([view.result, view.attempt], [2, 2])
    const outcome = { kind: 'complete', result: '"late"', durationMs: 1 } as const
    assert.equal((await consumer.settle([{ lease, outcome }])).length, 1, 'its first holder is fenced')
  })

  test('that has given a job up for stalling too often leaves it to us to bury', async (t) => {
    const { mill, redis, prefix, queue } = await besideBullmq(t)
    const runs: string[] = []
    const mail = defineJob({ type: 'mail', run: ({ job }) => void runs.push(job.id) })
    const job = await queue('mail').add('x', {})
    await redis.hset(`${prefix}:mail:${job.id}`, 'defa', 'job stalled more than allowable limit')
    await mill.work([mail])
    const view = await over(mill, `mail#${job.id}`)
    assert.deepEqual(
      [view.state, view.error?.message, runs],
      ['dead_letter', 'job stalled more than allowable limit', []],
    )
    assert.equal(await redis.hget(`${prefix}:mail:${job.id}`, 'defa'), null)
  })

  test('jobs that only BullMQ added are recovered by our reaper too', async (t) => {
    const { mill, queue, redis, prefix } = await besideBullmq(t)
    const job = await queue('mail').add('x', {}, { attempts: 2 })
    const consumer = await mill.engine.consume({ types: [{ type: 'mail', leaseMs: 60_000 }], worker: 'dead' })
    const signal = new AbortController().signal
    // As after a restart without data.
    await redis.del(`${prefix}::types`)
    assert.equal((await consumer.claim({ max: 1, waitMs: 0, signal })).length, 1)
    await redis.del(`${prefix}:mail:${job.id}:lock`)
    const reaper = await mill.engine.consume({ types: 'every', worker: 'reaper' })
    const [expired] = await reaper.claim({ max: 10, waitMs: 0, from: 'expired', signal })
    assert.deepEqual([expired?.job.id, expired?.attempt], [`mail#${job.id}`, 1])
  })

  test('completes a job of ours: its key is free, what comes after it and the next version of a latest key go on', async (t) => {
    const { mill, worker } = await besideBullmq(t)
    const mail = defineJob({ type: 'mail' })
    const next = defineJob({ type: 'next', run: () => 'ran' })
    const first = await mill.enqueue(mail, 1, { key: 'k' })
    const follows = await mill.enqueue(next, {}, { after: [first] })
    const version = await mill.enqueue(mail, 2, { latest: 'l' })
    const busy = Promise.withResolvers<void>()
    const started = Promise.withResolvers<void>()
    worker('mail', async (data) => {
      if (data !== 2) return
      started.resolve()
      await busy.promise
    })
    await started.promise
    await over(mill, first.id)
    busy.resolve()
    await over(mill, version.id)
    assert.equal((await mill.enqueue(mail, 3, { key: 'k' })).status, 'enqueued')
    const newer = await mill.enqueue(mail, 4, { latest: 'l' })
    assert.equal((await over(mill, newer.id)).state, 'completed')
    await mill.work([next])
    const reaper = await mill.engine.consume({ types: 'every', worker: 'reaper' })
    await reaper.claim({ max: 10, waitMs: 0, from: 'expired', signal: new AbortController().signal })
    assert.equal((await over(mill, follows.id)).result, 'ran')
  })

  test('that runs a version of a latest key: the next version waits for it, and the older one is not superseded', async (t) => {
    const gates = new Map([1, 2, 3].map((version) => [version, Promise.withResolvers<void>()]))
    // Before the stage is cleared: a worker of BullMQ's waits for its handlers.
    t.after(() => {
      for (const { resolve } of gates.values()) resolve()
    })
    const { mill, worker, queue } = await besideBullmq(t)
    const mail = defineJob({ type: 'mail' })
    const running = new Set<unknown>()
    const most: number[] = []
    worker(
      'mail',
      async (data) => {
        running.add(data)
        most.push(running.size)
        await gates.get(Number(data))?.promise
        running.delete(data)
      },
      { concurrency: 5 },
    )
    const first = await mill.enqueue(mail, 1, { latest: 'l' })
    await until(async () => running.has(1))
    const second = await mill.enqueue(mail, 2, { latest: 'l' })
    assert.equal(second.status, 'enqueued', 'the older one runs: nothing was replaced')
    assert.equal((await mill.job(first.id))?.state, 'in_progress')
    assert.equal(await queue('mail').getJobState(second.id), 'waiting-children')
    const third = await mill.enqueue(mail, 3, { latest: 'l' })
    assert.equal(third.status, 'replaced')
    gates.get(1)?.resolve()
    assert.equal((await over(mill, first.id)).state, 'completed')
    const reaper = await mill.engine.consume({ types: 'every', worker: 'reaper' })
    await reaper.claim({ max: 10, waitMs: 0, from: 'expired', signal: new AbortController().signal })
    gates.get(3)?.resolve()
    assert.equal((await over(mill, third.id)).state, 'completed')
    assert.equal((await over(mill, second.id)).state, 'superseded')
    assert.deepEqual(most, [1, 1], 'one version at a time')
  })

  test('that puts a version of a latest key back: the newer one that waits for it takes its place', async (t) => {
    const started = Promise.withResolvers<void>()
    const fails = Promise.withResolvers<void>()
    t.after(() => fails.resolve())
    const { mill, worker, queue } = await besideBullmq(t)
    const mail = defineJob({ type: 'mail' })
    const ran: unknown[] = []
    const bull = worker('mail', async (data) => {
      ran.push(data)
      started.resolve()
      await fails.promise
      throw new Error('no')
    })
    const first = await mill.enqueue(mail, 1, { latest: 'l', attempts: 5 })
    await started.promise
    const second = await mill.enqueue(mail, 2, { latest: 'l' })
    await queue('mail').pause()
    fails.resolve()
    await until(async () => (await queue('mail').getJobState(first.id)) !== 'active')
    await bull.close()
    await queue('mail').resume()
    const reaper = await mill.engine.consume({ types: 'every', worker: 'reaper' })
    await reaper.claim({ max: 10, waitMs: 0, from: 'expired', signal: new AbortController().signal })
    await mill.work([mail.handledBy(({ payload }) => void ran.push(payload))])
    assert.equal((await over(mill, second.id)).state, 'completed')
    assert.equal((await over(mill, first.id)).state, 'superseded')
    assert.deepEqual(ran, [1, 2])
  })

  test('that retries an old version after a newer one has run: ours does not run it', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const ran: unknown[] = []
    const mail = defineJob({
      type: 'mail',
      attempts: 1,
      run: ({ payload }) => {
        ran.push(payload)
        if (payload === 1) throw new Error('no')
      },
    })
    await mill.work([mail])
    const first = await mill.enqueue(mail, 1, { latest: 'l' })
    await over(mill, first.id)
    await mill.result(await mill.enqueue(mail, 2, { latest: 'l' }))
    await (await queue('mail').getJob(first.id))?.retry()
    await until(async () => (await mill.job(first.id))?.state === 'superseded')
    assert.deepEqual(ran, [1, 2])
    assert.deepEqual((await mill.counts()).mail, { ready: 0, delayed: 0, inProgress: 0, completed: 1, dead: 0 })
  })
})
