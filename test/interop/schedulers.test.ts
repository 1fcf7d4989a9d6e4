/** BullMQ's own job schedulers, whose next run is added by the worker that starts one: a worker of ours does so too. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineJob } from 'millrace'
import { until } from '../bullmq/plain-queue.ts'
import { besideBullmq } from './beside-bullmq.ts'

describe('a job scheduler of BullMQ’s own', { timeout: 300_000 }, () => {
  test('with an interval goes on in our worker, each run once, with its template', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const foreign = queue('report')
    const runs: { readonly id: string; readonly payload: unknown }[] = []
    const report = defineJob({ type: 'report', run: ({ job, payload }) => void runs.push({ id: job.id, payload }) })
    await mill.work([report])
    await foreign.upsertJobScheduler('often', { every: 100 }, { name: 'tick', data: { a: 1 }, opts: { priority: 4 } })
    await until(async () => runs.length >= 4)
    await foreign.removeJobScheduler('often')
    assert.equal(new Set(runs.map(({ id }) => id)).size, runs.length)
    for (const { id, payload } of runs) {
      assert.match(id, /^report#repeat:often:\d+$/)
      assert.deepEqual(payload, { a: 1 })
    }
    const times = runs.map(({ id }) => Number(id.split(':').at(-1)))
    assert.deepEqual(
      times.map((ms, index) => ms - (times[index - 1] ?? ms) >= 0),
      times.map(() => true),
    )
    // A handler that has run is not a completed job yet.
    const first = runs[0]?.id.split('#')[1] ?? ''
    await until(async () => (await foreign.getJobState(first)) === 'completed')
    const last = await foreign.getJob(first)
    assert.deepEqual([last?.name, last?.opts.priority, last?.repeatJobKey], ['tick', 4, 'often'])
  })

  test('with a pattern has its next run at the pattern’s next time, and the count that BullMQ keeps', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const foreign = queue('report')
    const runs: string[] = []
    const report = defineJob({ type: 'report', run: ({ job }) => void runs.push(job.id) })
    await mill.work([report])
    await foreign.upsertJobScheduler('noon', { pattern: '0 12 * * *', tz: 'Europe/Oslo', immediately: true })
    await until(async () => runs.length === 1)
    const [next, ...others] = await foreign.getJobs(['delayed'])
    assert.equal(others.length, 0)
    const dueMs = (next?.timestamp ?? 0) + (next?.delay ?? 0)
    const hour = new Intl.DateTimeFormat('en', { timeZone: 'Europe/Oslo', hour: 'numeric', hour12: false })
    assert.equal(hour.format(dueMs), '12')
    const known = await foreign.getJobScheduler('noon')
    assert.deepEqual([known?.next, known?.iterationCount], [dueMs, 2])
  })

  test('ends where its limit is reached, and when it is removed', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const foreign = queue('report')
    const runs: string[] = []
    const report = defineJob({ type: 'report', run: ({ job }) => void runs.push(job.id) })
    await mill.work([report])
    await foreign.upsertJobScheduler('thrice', { every: 50, limit: 3 })
    await until(async () => runs.length === 3)
    await until(async () => (await foreign.getJobCounts('completed')).completed === 3)
    const counts = await foreign.getJobCounts('delayed', 'wait', 'active')
    assert.deepEqual(counts, { delayed: 0, wait: 0, active: 0 })
  })

  test('goes on though a run fails, and though its pattern cannot be read the run itself is run', async (t) => {
    const { mill, queue, redis, prefix } = await besideBullmq(t)
    const foreign = queue('report')
    const ids = new Set<string>()
    const report = defineJob({
      type: 'report',
      attempts: 1,
      run: ({ job }) => {
        ids.add(job.id)
        throw new Error('no')
      },
    })
    await foreign.upsertJobScheduler('odd', { pattern: '* * * * *', immediately: true }, { opts: { attempts: 1 } })
    const [first] = await foreign.getJobs(['wait', 'delayed'])
    const key = `${prefix}:report:${first?.id}`
    const opts = JSON.parse((await redis.hget(key, 'opts')) ?? '{}')
    await redis.hset(key, 'opts', JSON.stringify({ ...opts, repeat: { ...opts.repeat, pattern: 'gibberish' } }))
    await foreign.upsertJobScheduler('often', { every: 50 }, { opts: { attempts: 1 } })
    await mill.work([report])
    await until(async () => ids.size >= 4 && ids.has(`report#${first?.id}`))
    await foreign.removeJobScheduler('often')
  })

  test('is shared with a worker of BullMQ’s own without a run twice', async (t) => {
    const { mill, queue, worker } = await besideBullmq(t)
    const foreign = queue('report')
    const [ours, theirs]: [string[], string[]] = [[], []]
    const report = defineJob({ type: 'report', run: ({ job }) => void ours.push(job.id) })
    await mill.work([report])
    const other = worker('report', async () => {})
    other.on('completed', ({ id }) => theirs.push(`report#${id}`))
    await foreign.upsertJobScheduler('often', { every: 20 })
    await until(async () => ours.length + theirs.length >= 20)
    await foreign.removeJobScheduler('often')
    assert.equal(new Set([...ours, ...theirs]).size, ours.length + theirs.length)
  })
})
