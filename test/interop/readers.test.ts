/** A program that knows only BullMQ looks at our jobs: each state, result, error, progress and event is where it looks. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Queue } from 'bullmq'
import { defineJob, NonRetryable } from 'millrace'
import { z } from 'zod'
import { until } from '../bullmq/plain-queue.ts'
import { besideBullmq, over } from './beside-bullmq.ts'

describe('a BullMQ reader', { timeout: 300_000 }, () => {
  test('finds our jobs in every state', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    const [foreign, letterbox] = [queue('mail'), queue('letter')]
    // Nobody works on these.
    const letter = defineJob({ type: 'letter', payload: z.string() })
    const held = Promise.withResolvers<void>()
    const mail = defineJob({
      type: 'mail',
      payload: z.string(),
      run: async ({ payload, progress }) => {
        if (payload === 'dies') throw new NonRetryable('no such box')
        if (payload === 'runs') {
          await progress({ percent: 50 })
          await held.promise
        }
        return `did ${payload}`
      },
    })
    const worker = await mill.work([mail], { concurrency: 1 })
    const [done, dead] = [await mill.enqueue(mail, 'works'), await mill.enqueue(mail, 'dies')]
    await over(mill, done.id)
    await over(mill, dead.id)
    const running = await mill.enqueue(mail, 'runs')
    await until(async () => (await foreign.getJob(running.id))?.progress !== 0)
    const waiting = await mill.enqueue(letter, 'waits', { priority: 3, key: 'k' })
    const delayed = await mill.enqueue(letter, 'later', { delay: '1h', attempts: 7 })
    const after = await mill.enqueue(letter, 'follows', { after: [delayed] })

    const states = (of: Queue, jobs: readonly { readonly id: string }[]) =>
      Promise.all(jobs.map(({ id }) => of.getJobState(id)))
    assert.deepEqual(await states(foreign, [done, dead, running]), ['completed', 'failed', 'active'])
    assert.deepEqual(await states(letterbox, [waiting, delayed, after]), ['prioritized', 'delayed', 'waiting-children'])
    const none = { active: 0, completed: 0, delayed: 0, failed: 0, prioritized: 0, waiting: 0 }
    assert.deepEqual(await foreign.getJobCounts(), {
      ...none,
      active: 1,
      completed: 1,
      failed: 1,
      'waiting-children': 0,
    })
    assert.deepEqual(await letterbox.getJobCounts(), { ...none, prioritized: 1, delayed: 1, 'waiting-children': 1 })
    const [completed, failed, active] = await Promise.all([done, dead, running].map(({ id }) => foreign.getJob(id)))
    assert.deepEqual(
      [completed?.returnvalue, completed?.name, completed?.data, completed?.attemptsMade],
      ['did works', 'mail', 'works', 1],
    )
    assert.ok((completed?.finishedOn ?? 0) >= (completed?.processedOn ?? Number.POSITIVE_INFINITY))
    assert.deepEqual([failed?.failedReason, failed?.attemptsMade], ['no such box', 1])
    assert.match(failed?.stacktrace?.[0] ?? '', /no such box\n\s+at /)
    assert.deepEqual([active?.progress, active?.processedBy], [{ percent: 50 }, worker.id])
    const later = await letterbox.getJob(delayed.id)
    assert.deepEqual([later?.opts.attempts, later?.delay], [7, 3_600_000])
    const listed = await letterbox.getJobs(['prioritized', 'delayed', 'completed'])
    assert.deepEqual(listed.map(({ id }) => id).toSorted(), [waiting.id, delayed.id].toSorted())
    held.resolve()
    await over(mill, running.id)
  })

  test('hears of our jobs in the stream of events', async (t) => {
    const { mill, events } = await besideBullmq(t)
    const heard: string[] = []
    const stream = await events('mail')
    const ids = new Map<string, string>()
    const note =
      (event: string) =>
      ({ jobId, ...more }: { readonly jobId: string }) =>
        void heard.push(
          `${ids.get(jobId)} ${event} ${Object.values(more).filter((value) => typeof value !== 'object')}`,
        )
    for (const event of ['added', 'active', 'completed', 'failed', 'delayed'] as const) stream.on(event, note(event))
    stream.on('progress', ({ jobId, data }) => heard.push(`${ids.get(jobId)} progress ${JSON.stringify(data)}`))
    const mail = defineJob({
      type: 'mail',
      payload: z.string(),
      attempts: 2,
      backoff: { kind: 'fixed', delay: 20 },
      run: async ({ payload, progress }) => {
        if (payload === 'bad') throw new Error('no such box')
        await progress(7)
        return 'sent'
      },
    })
    const [good, bad] = [await mill.enqueue(mail, 'good'), await mill.enqueue(mail, 'bad')]
    ids.set(good.id, 'good').set(bad.id, 'bad')
    await mill.work([mail])
    await over(mill, bad.id)
    for (const end of ['bad failed', 'good completed'])
      await until(async () => heard.some((line) => line.startsWith(end)))
    const of = (name: string) => heard.filter((line) => line.startsWith(name)).map((line) => line.split(' ')[1])
    assert.deepEqual(
      of('good').filter((event) => event !== 'added'),
      ['active', 'progress', 'completed'],
    )
    assert.deepEqual(
      of('bad').filter((event) => event !== 'added'),
      ['active', 'delayed', 'active', 'failed'],
    )
    assert.ok(heard.includes('good progress 7'))
    assert.ok(heard.some((line) => /^bad failed .*no such box/.test(line)))
    assert.ok(heard.some((line) => /^good completed .*sent/.test(line)))
  })

  test('who waits for one of our jobs gets its result, or its error', async (t) => {
    const { mill, queue, events } = await besideBullmq(t)
    const stream = await events('mail')
    const mail = defineJob({
      type: 'mail',
      payload: z.boolean(),
      attempts: 1,
      run: ({ payload }) => {
        if (payload) throw new Error('no such box')
        return { sent: [1, 2] }
      },
    })
    const foreign = queue('mail')
    const receipts = [await mill.enqueue(mail, false), await mill.enqueue(mail, true)]
    const [good, bad] = await Promise.all(receipts.map(({ id }) => foreign.getJob(id)))
    await mill.work([mail])
    assert.deepEqual(await good?.waitUntilFinished(stream, 60_000), { sent: [1, 2] })
    await assert.rejects(bad?.waitUntilFinished(stream, 60_000) ?? Promise.resolve(), /no such box/)
  })

  test('reads what happened to a job beyond the happy path in its logs', async (t) => {
    const { mill, queue } = await besideBullmq(t)
    let starts = 0
    const mail = defineJob({
      type: 'mail',
      backoff: { kind: 'fixed', delay: 1 },
      run: () => {
        starts += 1
        if (starts === 1) throw new Error('once')
      },
    })
    await mill.work([mail])
    const { id } = await mill.enqueue(mail, {})
    await over(mill, id)
    const { logs, count } = await queue('mail').getJobLogs(id)
    const lines = logs.map((line) => JSON.parse(line))
    assert.equal(count, lines.length)
    assert.deepEqual(
      lines.map(({ event }) => event),
      ['started', 'failed', 'retried'],
    )
    assert.equal(lines[1].detail.error.message, 'once')
  })
})
