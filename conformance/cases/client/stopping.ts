import assert from 'node:assert/strict'
import type { Mill } from '../../../src/client/mill.ts'
import type { Worker } from '../../../src/worker/worker.ts'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { gate, rejection, type Stage } from '../../stage.ts'

/** A handler that is drained hands on its work: one job, then several at once, then it ends well. */
async function enqueuesWhileItDrains(stage: Stage, stop: (mill: Mill, worker: Worker) => Promise<void>): Promise<void> {
  const mill = await stage.mill(await stage.other())
  const next = numberedJob(stage, {}, `${stage.type}-next`)
  const [running, hold] = [gate(), gate()]
  const job = numberedJob(stage, {
    attempts: 1,
    run: async () => {
      running.open()
      await hold.opened
      await mill.enqueue(next, { n: 1 })
      await mill.enqueueMany(next, [{ n: 2 }, { n: 3 }])
    },
  })
  const seen = record(mill)
  const worker = await mill.work([job])
  const { id } = await mill.enqueue(job, { n: 1 })
  await stage.within(SOON_MS, running.opened, 'the start')
  const stopped = stop(mill, worker)
  await stage.harness.advance(100)
  hold.open()
  await stage.within(SOON_MS, stopped, 'the stop')
  assert.deepEqual(seen.kinds(id), ['complete'])
  await stage.expectCounts({ completed: 1 })
  await stage.expectCounts({ ready: 3 }, `${stage.type}-next`)
}

export const stopping: CaseFile = {
  level: 'client',
  concept: 'Stopping',
  cases: [
    {
      // A05 B132 B137
      name: 'stop lets running handlers finish and takes nothing new',
      guarantees: ['I8'],
      async run(stage) {
        const mill = await stage.mill()
        const hold = gate()
        let starts = 0
        const job = numberedJob(stage, {
          run: async () => {
            starts += 1
            await hold.opened
          },
        })
        const seen = record(mill)
        const worker = await mill.work([job], { concurrency: 1 })
        await mill.enqueueMany(job, [{ n: 1 }, { n: 2 }])
        await stage.until(SOON_MS, () => starts === 1, 'the start')
        const stopped = worker.stop()
        await stage.harness.advance(200)
        hold.open()
        await stage.within(SOON_MS, stopped, 'the stop')
        assert.deepEqual([starts, seen.settled.map(({ outcome }) => outcome.kind).includes('complete')], [1, true])
        await stage.expectCounts({ completed: 1, ready: 1 })
      },
    },
    {
      // B133 B135 X020
      name: 'a handler that does not end within the drain time is aborted and its job given back, attempt and all',
      guarantees: ['I2', 'I8'],
      async run(stage) {
        const mill = await stage.mill()
        const reasons: unknown[] = []
        const running = gate()
        const job = numberedJob(stage, {
          run: ({ signal }) =>
            new Promise((_resolve, reject) => {
              running.open()
              signal.addEventListener('abort', () => {
                reasons.push(Reflect.get(signal.reason, 'code'))
                reject(signal.reason)
              })
            }),
        })
        const worker = await mill.work([job], { drain: 300 })
        await mill.enqueue(job, { n: 1 })
        await stage.within(SOON_MS, running.opened, 'the start')
        await stage.within(SOON_MS, worker.stop(), 'the stop')
        assert.deepEqual(reasons, ['ERR_STOPPING'])
        await stage.expectCounts({ ready: 1 })
        assert.equal((await stage.one(await stage.consume())).attempt, 1)
      },
    },
    {
      name: 'a handler that ignores its signal cannot hold up the stop, and its job is given back',
      guarantees: ['I8'],
      async run(stage) {
        const mill = await stage.mill()
        const running = gate()
        const job = numberedJob(stage, {
          run: () => {
            running.open()
            return new Promise(() => {})
          },
        })
        const worker = await mill.work([job], { drain: 100 })
        await mill.enqueue(job, { n: 1 })
        await stage.within(SOON_MS, running.opened, 'the start')
        await stage.within(SOON_MS, worker.stop(), 'the stop')
        await stage.expectCounts({ ready: 1 })
        assert.equal((await stage.one(await stage.consume())).attempt, 1)
      },
    },
    {
      name: 'after a stop nothing is leased, though more was claimed than could run',
      guarantees: ['I8', 'I2'],
      async run(stage) {
        const mill = await stage.mill()
        let starts = 0
        const job = numberedJob(stage, {
          run: async () => {
            starts += 1
            await stage.harness.clock.sleep(50)
          },
        })
        await mill.enqueueMany(
          job,
          Array.from({ length: 100 }, (_, n) => ({ n })),
        )
        const worker = await mill.work([job], { concurrency: 5 })
        await stage.until(SOON_MS, () => starts >= 8, 'a few starts')
        await stage.within(SOON_MS, worker.stop(), 'the stop')
        await stage.expectCounts({ completed: starts, ready: 100 - starts })
        const rest = await stage.take(await stage.consume(), 100)
        assert.deepEqual([...new Set(rest.map(({ attempt }) => attempt))], [1], 'a start was counted that never was')
      },
    },
    {
      // B136
      name: 'stop is legal twice and returns the same promise',
      guarantees: ['I8'],
      async run(stage) {
        const mill = await stage.mill()
        const worker = await mill.work([numberedJob(stage, { run: () => null })])
        const once = worker.stop()
        assert.equal(worker.stop(), once)
        await stage.within(SOON_MS, once, 'the stop')
        await stage.within(SOON_MS, worker.stopped, 'the end of the worker')
      },
    },
    {
      name: 'a handler that enqueues while its mill closes stores its jobs and completes',
      guarantees: ['I1', 'I8'],
      run: (stage) => enqueuesWhileItDrains(stage, (mill) => mill.close()),
    },
    {
      name: 'a handler that enqueues while its worker stops stores its jobs and completes',
      guarantees: ['I1', 'I8'],
      run: (stage) => enqueuesWhileItDrains(stage, (_mill, worker) => worker.stop()),
    },
    {
      name: 'closing a mill stops its workers, and a closed mill refuses every call',
      guarantees: ['I8'],
      async run(stage) {
        const mill = await stage.mill(await stage.other())
        const job = numberedJob(stage, { run: () => null })
        const worker = await mill.work([job])
        await stage.within(SOON_MS, mill.close(), 'the close')
        await stage.within(SOON_MS, worker.stopped, 'the end of the worker')
        assert.equal(await rejection(mill.enqueue(job, { n: 1 })), 'ERR_CLOSED')
        assert.equal(await rejection(mill.work([job])), 'ERR_CLOSED')
        assert.equal(await rejection(mill.counts()), 'ERR_CLOSED')
      },
    },
  ],
}
