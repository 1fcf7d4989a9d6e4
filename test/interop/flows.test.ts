/** Flows of BullMQ's own: children that we ran, or buried, do to their parent what BullMQ says. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineJob, openDesk } from 'millrace'
import { z } from 'zod'
import { until } from '../bullmq/plain-queue.ts'
import { besideBullmq, over } from './beside-bullmq.ts'

const by = { who: 'ann', reason: 'test' }
const child = defineJob({
  type: 'child',
  payload: z.object({ fails: z.boolean() }),
  attempts: 1,
  run: ({ payload, job }) => {
    if (payload.fails === true) throw new Error('no')
    return `result of ${job.id}`
  },
})
const one = (fails = false, opts: object = {}) => ({
  name: 'c',
  queueName: 'child',
  data: { fails },
  opts: { attempts: 1, ...opts },
})

describe('a flow of BullMQ’s own', { timeout: 300_000 }, () => {
  test('its parent runs in our worker once we have completed its children, whose results BullMQ shows', async (t) => {
    const { mill, flows, queue } = await besideBullmq(t)
    const { job, children = [] } = await flows().add({
      name: 'p',
      queueName: 'parent',
      data: {},
      children: [one(), one(), one()],
    })
    let completed = 0
    const parent = defineJob({
      type: 'parent',
      run: async () => {
        completed = (await queue('child').getJobCounts('completed')).completed ?? 0
        return 'whole'
      },
    })
    assert.equal((await mill.job(`parent#${job.id}`))?.state, 'queued')
    await mill.work([child, parent])
    assert.equal((await over(mill, `parent#${job.id}`)).result, 'whole')
    assert.equal(completed, 3)
    const shown = await (await queue('parent').getJob(String(job.id)))?.getChildrenValues()
    assert.deepEqual(
      Object.values(shown ?? {}).toSorted(),
      children.map(({ job: { id } }) => `result of child#${id}`).toSorted(),
    )
  })

  test('a parent of BullMQ’s own worker is released by children of ours, also of ones that are not kept', async (t) => {
    const { mill, flows, worker } = await besideBullmq(t)
    const ran = Promise.withResolvers<void>()
    worker('parent', async () => ran.resolve())
    const brief = defineJob({ type: 'child', removeOnComplete: true, run: () => 'x' })
    await mill.work([brief])
    await flows().add({ name: 'p', queueName: 'parent', data: {}, children: [one(), one()] })
    await ran.promise
  })

  test('a parent waits while a child is a dead letter, and goes on when it is replayed', async (t) => {
    const { mill, flows } = await besideBullmq(t)
    let isDown = true
    const flaky = defineJob({
      type: 'child',
      attempts: 1,
      run: () => {
        if (isDown) throw new Error('no')
      },
    })
    const parent = defineJob({ type: 'parent', run: () => 'whole' })
    await mill.work([flaky, parent])
    const { job, children } = await flows().add({ name: 'p', queueName: 'parent', data: {}, children: [one()] })
    const childId = `child#${children?.[0]?.job.id}`
    assert.equal((await over(mill, childId)).state, 'dead_letter')
    assert.equal((await mill.job(`parent#${job.id}`))?.state, 'queued')
    isDown = false
    await openDesk(mill).replay(childId, by)
    assert.equal((await over(mill, `parent#${job.id}`)).result, 'whole')
  })

  test('failParentOnFailure buries a parent of ours without running it', async (t) => {
    const { mill, flows } = await besideBullmq(t)
    const runs: string[] = []
    const parent = defineJob({ type: 'parent', run: ({ job }) => void runs.push(job.id) })
    const settled: string[] = []
    mill.events.on('job.settled', ({ job, outcome }) => settled.push(`${job.type} ${outcome.kind}`))
    await mill.work([child, parent])
    const children = [one(true, { failParentOnFailure: true })]
    const { job } = await flows().add({ name: 'p', queueName: 'parent', data: {}, children })
    const dead = await over(mill, `parent#${job.id}`)
    assert.deepEqual([dead.state, dead.error?.name, runs], ['dead_letter', 'NonRetryable', []])
    assert.match(dead.error?.message ?? '', /^child .* failed$/)
    // The row is dead before the answer that says so is back here.
    await until(async () => settled.length >= 2)
    assert.deepEqual(settled, ['child dead', 'parent dead'], 'metrics and alerts hear of it as of any other')
  })

  test('ignoreDependencyOnFailure and removeDependencyOnFailure let it run', async (t) => {
    const { mill, flows } = await besideBullmq(t)
    const parent = defineJob({ type: 'parent', run: () => 'whole' })
    await mill.work([child, parent])
    const children = [
      one(true, { ignoreDependencyOnFailure: true }),
      one(true, { removeDependencyOnFailure: true }),
      one(),
    ]
    const { job } = await flows().add({ name: 'p', queueName: 'parent', data: {}, children })
    assert.equal((await over(mill, `parent#${job.id}`)).result, 'whole')
  })

  test('a child that is purged, or cancelled, holds its parent no more', async (t) => {
    const { mill, flows } = await besideBullmq(t)
    const parent = defineJob({ type: 'parent', run: () => 'whole' })
    await mill.work([child, parent])
    const children = [one(true), one(false, { delay: 3_600_000 })]
    const flow = await flows().add({ name: 'p', queueName: 'parent', data: {}, children })
    const [failed, late] = flow.children?.map(({ job }) => `child#${job.id}`) ?? []
    assert.ok(failed && late)
    await until(async () => (await mill.job(failed))?.state === 'dead_letter')
    assert.deepEqual(await mill.engine.deadLetters?.remove([failed], by), [true])
    assert.equal((await mill.job(`parent#${flow.job.id}`))?.state, 'queued')
    assert.equal(await mill.cancel(late, by), true)
    assert.equal((await over(mill, `parent#${flow.job.id}`)).result, 'whole')
  })
})
