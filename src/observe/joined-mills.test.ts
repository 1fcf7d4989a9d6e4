import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sampleValue } from '../../test/fixtures/exposition.ts'
import { open } from '../client/mill.ts'
import type { Counts } from '../engine/engine.ts'
import { Events } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { checkHealth, workersOf } from './health.ts'
import { joinMills } from './joined-mills.ts'
import { attachMetrics } from './metrics/metrics.ts'

const counted = (ready: number): Counts[string] => ({ ready, delayed: 0, inProgress: 0, completed: 0, dead: 0 })

/** A mill of which only its counts are asked. */
function fake(counts: Counts, threadUrl: string | null = null) {
  let asked = 0
  const engine = {
    ...{ name: 'fake', threadUrl, ping: async () => {} },
    counts: async () => {
      asked += 1
      return counts
    },
  }
  return { events: new Events(), engine, asked: () => asked }
}

test('a process with several mills counts the jobs, the workers and the queues of all of them', async () => {
  const mills = [await open('memory:'), await open('memory:'), await open('memory:')] as const
  const metrics = await attachMetrics(mills)
  const ended: Promise<unknown>[] = []
  for (const [index, mill] of mills.entries()) {
    const job = defineJob({ type: `kind-${index}`, run: () => 'done' })
    await mill.work([job])
    const { id } = await mill.enqueue(job, null)
    ended.push(mill.result(id))
    await mill.enqueue(job, null, { delay: '1h' })
  }
  await Promise.all(ended)
  const text = await metrics.collectMetrics()
  const each = (name: string) => [0, 1, 2].map((index) => sampleValue(text, name, { type: `kind-${index}` }))
  assert.deepEqual(each('millrace_jobs_completed_total'), [1, 1, 1])
  assert.deepEqual(each('millrace_jobs_delayed'), [1, 1, 1])
  assert.equal(sampleValue(text, 'millrace_worker_instances'), 3)
  metrics.detach()
  for (const mill of mills) await mill.close()
})

test('what workers of other processes run on each mill can be told', async () => {
  const groups = [fake({ commands: counted(2) }), fake({ commands: counted(3), events: counted(9) })] as const
  const { engine } = joinMills(groups, [['commands'], ['commands']])
  assert.deepEqual(await engine.counts(), { commands: counted(5) }, 'who reads the events is not known here')
})

test('mills of one group count its types without a worker too', async () => {
  const group = fake({ commands: counted(2), events: counted(9) }, 'kafka://one')
  const { engine } = joinMills([group, fake({}, 'kafka://one')], [['commands'], []])
  assert.deepEqual(await engine.counts(), { commands: counted(2), events: counted(9) })
})

test('a type is counted on the stores of the mills that work on it, and one store is asked once', async () => {
  const reader = fake({ commands: counted(900), events: counted(1) })
  const worker = fake({ commands: counted(2) }, 'kafka://one')
  const same = fake({ commands: counted(2) }, 'kafka://one')
  const group = fake({ commands: counted(3) })
  const { engine, events } = joinMills([reader, worker, same, group])
  for (const mill of [worker, same, group]) {
    mill.events.emit('worker.started', { worker: 'w', types: ['commands'], concurrency: 1 })
  }
  assert.deepEqual(await engine.counts(), { commands: counted(5) })
  assert.deepEqual([reader.asked(), worker.asked(), same.asked()], [1, 1, 0])
  const heard: string[] = []
  const off = events.on('worker.stopped', ({ worker: id }) => void heard.push(id))
  for (const mill of [reader, worker, same]) mill.events.emit('worker.stopped', { worker: `of ${heard.length}` })
  off()
  same.events.emit('worker.stopped', { worker: 'later' })
  assert.deepEqual(heard, ['of 0', 'of 1', 'of 2'])
  assert.equal(same.events.hasListener('job.claimed'), false)
})

test('health of several mills is that of all their stores', async () => {
  await using one = await open('memory:')
  await using other = await open('memory:')
  const mills = [one, other] as const
  const { engine } = joinMills(mills)
  const health = () => checkHealth({ engine }, workersOf(engine))
  assert.deepEqual((await health()).reasons, [{ check: 'workers', text: 'no worker runs' }])
  const mail = defineJob({ type: 'mail', attempts: 1, run: () => Promise.reject(new Error('no')) })
  for (const mill of mills) {
    await mill.work([mail])
    const dead = mill.events.next('job.settled')
    await mill.enqueue(mail, null)
    await dead
    await mill.enqueue(mail, null, { delay: '1h' })
  }
  const { details, checks } = await health()
  assert.deepEqual([details.activeWorkers, details.deadLetterCount, checks.engine.status], [2, 2, 'healthy'])
  await other.close()
  assert.equal((await health()).checks.engine.status, 'unhealthy', 'one store is away')
})

test('workers that stores know by themselves count with those that send heartbeats', async () => {
  await using mill = await open('memory:')
  const group = fake({})
  const members = { ...group.engine, workers: async () => [{ id: 'member', types: ['commands'] }] }
  const { engine } = joinMills([{ ...group, engine: members }, mill])
  await mill.work([defineJob({ type: 'mail', run: () => 1 })])
  const { details } = await checkHealth({ engine }, workersOf(engine))
  assert.equal(details.activeWorkers, 2)
})

test('a type of two stores that have nothing to do with each other is counted in both, worked there or not', async () => {
  await using one = await open('memory:')
  await using other = await open('memory:')
  const { engine } = joinMills([one, other])
  const mail = defineJob({ type: 'mail', run: () => 1 })
  await one.work([mail])
  await one.enqueue(mail, null, { delay: '1h' })
  await other.enqueue(mail, null)
  assert.deepEqual((await engine.counts()).mail, { ...counted(1), delayed: 1 })
})
