import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Mill, open } from '../client/mill.ts'
import type { Lease } from '../engine/outcome.ts'
import { StoppingError } from '../errors.ts'
import type { EventName } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'

async function turns(count = 20): Promise<void> {
  for (let left = count; left > 0; left -= 1) await turn()
}

async function staged(): Promise<{ mill: Mill; clock: TestClock; seen: string[] }> {
  const clock = new TestClock()
  const mill = await open('memory:', { random: () => 0, clock })
  const seen: string[] = []
  const names: EventName[] = ['worker.stopping', 'worker.overdue', 'worker.stopped', 'worker.error']
  for (const name of names) mill.events.on(name, () => void seen.push(name))
  mill.events.on('job.settled', ({ outcome }) => void seen.push(outcome.kind))
  return { mill, clock, seen }
}

// A05 B132 B138
test('a running handler is waited for, its job completed, and no new job is started', async () => {
  const { mill, clock, seen } = await staged()
  const job = defineJob({ type: 'slow', run: () => clock.sleep(2_000) })
  const first = await mill.enqueue(job, null)
  const worker = await mill.work([job], { concurrency: 1 })
  await turns()
  const second = await mill.enqueue(job, null)
  const stopped = worker.stop()
  await clock.advance('1s')
  assert.deepEqual(seen, ['worker.stopping'])
  await clock.advance('1s')
  await stopped
  assert.deepEqual(seen, ['worker.stopping', 'complete', 'worker.stopped'])
  assert.equal((await mill.job(first.id))?.state, 'completed')
  assert.equal((await mill.job(second.id))?.attempt, 0)
  assert.equal(clock.monotonicMs(), 2_000)
  await mill.close()
  assert.equal(clock.waiting, 0)
})

// X107
test('a handler that threw is not waited for', async () => {
  const { mill, clock, seen } = await staged()
  const job = defineJob({
    type: 'throws',
    run() {
      throw new Error('no')
    },
  })
  await mill.enqueue(job, null)
  const worker = await mill.work([job])
  await turns()
  assert.equal(worker.running, 0)
  await worker.stop()
  assert.deepEqual(seen, ['retry', 'worker.stopping', 'worker.stopped'])
  assert.equal(clock.monotonicMs(), 0)
  await mill.close()
})

// B136
test('stopping twice is one stop', async () => {
  const { mill, seen } = await staged()
  const worker = await mill.work([defineJob({ type: 'a', run: () => {} })])
  const first = worker.stop()
  assert.equal(worker.stop('again'), first)
  assert.equal(worker.stopped, first)
  await first
  assert.deepEqual(seen, ['worker.stopping', 'worker.stopped'])
  await mill.close()
})

// B133 B135 X111 I8
test('a handler that ignores everything is aborted after the drain and its job given back', async () => {
  const { mill, clock, seen } = await staged()
  let reason: unknown = null
  const job = defineJob({
    type: 'deaf',
    run({ signal }) {
      signal.addEventListener('abort', () => {
        reason = signal.reason
      })
      return new Promise(() => {})
    },
  })
  const { id } = await mill.enqueue(job, null)
  const worker = await mill.work([job])
  await turns()
  const stopped = worker.stop()
  await clock.advance(29_999)
  assert.deepEqual(seen, ['worker.stopping'])
  await clock.advance(1)
  assert.deepEqual(seen, ['worker.stopping', 'worker.overdue'])
  assert.ok(reason instanceof StoppingError)
  await clock.advance('1s')
  await stopped
  assert.deepEqual(seen, ['worker.stopping', 'worker.overdue', 'release', 'worker.stopped'])
  const view = await mill.job(id)
  assert.equal(view?.state, 'queued')
  assert.equal(view?.attempt, 0)
  assert.equal(view?.leaseOwner, null)
  await mill.close()
})

test('a handler that throws because it was aborted is given back, one that still completes is completed', async () => {
  const { mill, clock, seen } = await staged()
  const aborted = (signal: AbortSignal) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  const throws = defineJob({
    type: 'throws',
    attempts: 1,
    async run({ signal }) {
      await aborted(signal)
      signal.throwIfAborted()
    },
  })
  const ends = defineJob({
    type: 'ends',
    async run({ signal }) {
      await aborted(signal)
      return 'in time'
    },
  })
  const [thrown, ended] = [await mill.enqueue(throws, null), await mill.enqueue(ends, null)]
  const worker = await mill.work([throws, ends], { drain: '5s' })
  await turns()
  const stopped = worker.stop()
  await clock.advance('5s')
  await stopped
  assert.equal(clock.monotonicMs(), 5_000)
  assert.equal((await mill.job(thrown.id))?.state, 'queued')
  assert.equal((await mill.job(thrown.id))?.attempt, 0)
  assert.equal((await mill.job(ended.id))?.result, 'in time')
  assert.deepEqual(seen.slice(0, 2), ['worker.stopping', 'worker.overdue'])
  await mill.close()
})

// X108
test('a claim under way when the worker stops is waited for and what it brought is given back', async (t) => {
  const { mill } = await staged()
  const consume = mill.engine.consume.bind(mill.engine)
  const held = Promise.withResolvers<void>()
  const brought: Lease[] = []
  t.mock.method(mill.engine, 'consume', async (subscription: Parameters<typeof consume>[0]) => {
    const consumer = await consume(subscription)
    const claim = consumer.claim.bind(consumer)
    consumer.claim = async (request) => {
      const leases = await claim(request)
      if (leases.length > 0) {
        brought.push(...leases)
        await held.promise
      }
      return leases
    }
    return consumer
  })
  let ran = 0
  const job = defineJob({
    type: 'late',
    run() {
      ran += 1
    },
  })
  const { id } = await mill.enqueue(job, null)
  const worker = await mill.work([job])
  await turns()
  assert.equal(brought.length, 1)
  const stopped = worker.stop()
  await turns()
  held.resolve()
  await stopped
  assert.equal(ran, 0)
  const view = await mill.job(id)
  assert.equal(view?.state, 'queued')
  assert.equal(view?.attempt, 0)
  await mill.close()
})

test('jobs that wait for a slot are given back at once', async () => {
  const { mill, clock } = await staged()
  let slow = false
  const job = defineJob({ type: 'moody', run: () => (slow ? clock.sleep(10_000) : undefined) })
  await mill.enqueueMany(job, Array(100).fill(null))
  const worker = await mill.work([job], { concurrency: 5 })
  await turns(60)
  assert.equal((await mill.counts()).moody?.completed, 100)
  slow = true
  await mill.enqueueMany(job, Array(20).fill(null))
  await turns()
  assert.ok(((await mill.counts()).moody?.inProgress ?? 0) > 5, 'nothing was claimed ahead')
  const stopped = worker.stop()
  await turns()
  assert.equal((await mill.counts()).moody?.inProgress, 5)
  assert.equal((await mill.counts()).moody?.ready, 15)
  await clock.advance('10s')
  await stopped
  await mill.close()
})

// I8
test('a store that hangs or fails does not keep a worker from stopping', async (t) => {
  const { mill, clock, seen } = await staged()
  const consume = mill.engine.consume.bind(mill.engine)
  t.mock.method(mill.engine, 'consume', async (subscription: Parameters<typeof consume>[0]) => {
    const consumer = await consume(subscription)
    if (subscription.types === 'every') return consumer
    consumer.settle = () => new Promise(() => {})
    consumer.close = () => Promise.reject(new Error('close failed'))
    return consumer
  })
  const job = defineJob({ type: 'a', run: () => {} })
  await mill.enqueue(job, null)
  const worker = await mill.work([job])
  await turns()
  const stopped = worker.stop()
  await clock.advance('10s')
  await stopped
  assert.deepEqual(seen, ['worker.stopping', 'worker.error', 'worker.error', 'worker.stopped'])
})

// I8
test('with a store that answers nothing a stop takes the drain and 5 s, and a close 3 s more', async (t) => {
  for (const busy of [true, false]) {
    const { mill, clock, seen } = await staged()
    const never = () => new Promise<never>(() => {})
    let isAway = false
    const consume = mill.engine.consume.bind(mill.engine)
    t.mock.method(mill.engine, 'consume', async (subscription: Parameters<typeof consume>[0]) => {
      const consumer = await consume(subscription)
      for (const name of ['claim', 'renew', 'settle', 'close'] as const) {
        const call = consumer[name].bind(consumer) as (...given: readonly unknown[]) => Promise<never>
        consumer[name] = (...given: readonly unknown[]) => (isAway ? never() : call(...given))
      }
      return consumer
    })
    t.mock.method(mill.engine, 'close', never)
    const job = defineJob({ type: 'a', run: () => never() })
    if (busy) await mill.enqueue(job, null)
    await mill.work([job], { drain: '30s' })
    await turns()
    isAway = true
    Object.assign(mill.engine.records ?? {}, { list: never, save: never, remove: never })
    const startedMs = clock.monotonicMs()
    const closed = mill.close().then(() => clock.monotonicMs() - startedMs)
    while (!seen.includes('worker.stopped') && clock.monotonicMs() < 60_000) await clock.advance(100)
    const stopMs = clock.monotonicMs() - startedMs
    assert.ok(stopMs <= (busy ? 35_000 : 5_000), `the stop took ${stopMs} ms`)
    await clock.advance('3s')
    const closeMs = await closed
    assert.ok(closeMs <= (busy ? 38_000 : 8_000), `the close took ${closeMs} ms`)
  }
})

// B131 X110
test('signals stop the worker when it was told so, and its listeners are gone afterwards', async () => {
  const { mill } = await staged()
  const job = defineJob({ type: 'a', run: () => {} })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const before = process.listenerCount(signal)
    const deaf = await mill.work([job])
    assert.equal(process.listenerCount(signal), before)
    const worker = await mill.work([job], { signals: true })
    assert.equal(process.listenerCount(signal), before + 1)
    const stopping = mill.events.next('worker.stopping')
    process.kill(process.pid, signal)
    assert.deepEqual(await stopping, { worker: worker.id, running: [], cause: signal })
    await worker.stopped
    assert.equal(process.listenerCount(signal), before)
    await deaf.stop()
  }
  await mill.close()
})

test('a signal before the store has taken the worker in ends the start: it is stopped, and its listeners are gone', async () => {
  const { mill, seen } = await staged()
  const job = defineJob({ type: 'a', run: () => {} })
  const before = process.listenerCount('SIGTERM')
  const [asked, heard] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()]
  // As Kafka does while the rest of a group joins.
  mill.engine.consume = ({ signal }) => {
    asked.resolve()
    signal?.addEventListener('abort', () => heard.resolve(signal.reason))
    return new Promise(() => {})
  }
  const starting = mill.work([job], { signals: true })
  assert.equal(process.listenerCount('SIGTERM'), before + 1)
  await asked.promise
  process.emit('SIGTERM', 'SIGTERM')
  await (await starting).stopped
  assert.equal(await heard.promise, 'SIGTERM')
  assert.deepEqual([seen, process.listenerCount('SIGTERM')], [['worker.stopped'], before])
  await mill.close()
})
