import assert from 'node:assert/strict'
import { LeaseLostError } from '../../../src/errors.ts'
import { currentTenant } from '../../../src/worker/context.ts'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { ageing, cancellation, delay, inspection, need, priority } from '../../needs.ts'
import { gate, rejection } from '../../stage.ts'

export const handlers: CaseFile = {
  level: 'client',
  concept: 'Running handlers',
  cases: [
    {
      // B44 B89
      name: 'a handler’s result is stored and can be waited for',
      guarantees: ['I1', 'I2'],
      ...need(inspection),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { run: ({ payload }) => ({ doubled: payload.n * 2 }) })
        await mill.work([job])
        const receipt = await mill.enqueue(job, { n: 21 })
        assert.deepEqual(await stage.within(SOON_MS, mill.result(receipt), 'the result'), { doubled: 42 })
        const view = await mill.job(receipt.id)
        assert.deepEqual([view?.state, view?.attempt, view?.error], ['completed', 1, null])
      },
    },
    {
      name: 'a result is waited for from another view than the worker’s',
      guarantees: ['I1'],
      ...need(inspection),
      async run(stage) {
        const [front, back] = [await stage.mill(), await stage.mill(await stage.other())]
        const hold = gate()
        const job = numberedJob(stage, { run: () => hold.opened.then(() => 'late') })
        await back.work([job])
        const receipt = await front.enqueue(job, { n: 1 })
        const result = front.result(receipt, { timeout: '60s' })
        await stage.harness.advance(200)
        hold.open()
        assert.equal(await stage.within(SOON_MS, result, 'the result'), 'late')
      },
    },
    {
      name: 'waiting for a result that will never come says why',
      guarantees: ['I1'],
      ...need(inspection, cancellation, delay),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, {
          attempts: 1,
          run: () => {
            throw new Error('no')
          },
        })
        const ended = await mill.enqueue(job, { n: 1 }, { delay: 1_000 })
        const cancelled = rejection(mill.result(ended))
        await mill.cancel(ended.id)
        assert.equal(await stage.within(SOON_MS, cancelled, 'the answer'), 'ERR_JOB_ENDED')
        const waiting = rejection(mill.result(await mill.enqueue(job, { n: 2 }), { timeout: 100 }))
        assert.equal(await stage.within(SOON_MS, waiting, 'the answer'), 'ERR_WAIT_TIMEOUT')
        await mill.work([job])
        const dead = rejection(mill.result(await mill.enqueue(job, { n: 3 })))
        assert.equal(await stage.within(SOON_MS, dead, 'the answer'), 'ERR_JOB_DEAD')
        assert.equal(await rejection(mill.result('01ARZ3NDEKTSV4RRFFQ69G5FAV')), 'ERR_JOB_UNKNOWN')
      },
    },
    {
      // A13
      name: 'two workers on two views run every job exactly once',
      guarantees: ['I4'],
      async run(stage) {
        const mills = [await stage.mill(), await stage.mill(await stage.other())]
        const ran = new Map<number, number>()
        const job = numberedJob(stage, {
          run: async ({ payload }) => {
            ran.set(payload.n, (ran.get(payload.n) ?? 0) + 1)
            await stage.harness.clock.sleep(payload.n % 7)
          },
        })
        for (const mill of mills) await mill.work([job], { concurrency: 8 })
        await mills[0]?.enqueueMany(
          job,
          Array.from({ length: 300 }, (_, n) => ({ n })),
        )
        await stage.until(SOON_MS * 2, async () => (await stage.counts()).completed === 300, 'the end of all jobs')
        assert.deepEqual([ran.size, Math.max(...ran.values())], [300, 1])
      },
    },
    {
      // A14
      name: 'a worker runs only the types it was given',
      guarantees: ['I1'],
      async run(stage) {
        const mill = await stage.mill()
        const ran: string[] = []
        const mine = numberedJob(stage, { run: () => ran.push('mine') })
        const foreign = numberedJob(stage, {}, `${stage.type}-foreign`)
        await mill.enqueue(foreign, { n: 1 })
        await mill.enqueue(mine, { n: 1 })
        const seen = record(mill)
        await mill.work([mine])
        await stage.until(SOON_MS, () => seen.settled.length === 1, 'the end of the job')
        await stage.expectCounts({ ready: 1 }, foreign.type)
        assert.deepEqual(ran, ['mine'])
      },
    },
    {
      // B84
      name: 'a worker that runs one job at a time starts the most urgent first',
      guarantees: ['I1'],
      ...need(priority),
      async run(stage) {
        const mill = await stage.mill()
        const ran: number[] = []
        const job = numberedJob(stage, { run: ({ payload }) => ran.push(payload.n) })
        for (const n of [7, 3, 1, 9, 5]) await mill.enqueue(job, { n }, { priority: n })
        await mill.work([job], { concurrency: 1 })
        await stage.until(SOON_MS, () => ran.length === 5, 'all starts')
        assert.deepEqual(ran, [1, 3, 5, 7, 9])
      },
    },
    {
      // X119
      name: 'a worker with ageing starts a job that has waited long before newer ones of a better priority',
      guarantees: ['I1'],
      ...need(ageing, delay),
      async run(stage) {
        const mill = await stage.mill()
        const ran: number[] = []
        const job = numberedJob(stage, { run: ({ payload }) => ran.push(payload.n) })
        for (const n of [9, 2, 1]) await mill.enqueue(job, { n }, { priority: n })
        await mill.enqueue(job, { n: 10 }, { priority: 10, at: new Date(stage.nowMs - 85 * 60_000) })
        await mill.work([job], { concurrency: 1, ageing: '10m' })
        await stage.until(SOON_MS, () => ran.length === 4, 'all starts')
        assert.deepEqual(ran, [1, 10, 2, 9])
      },
    },
    {
      name: 'hooks are called once each and in order',
      guarantees: ['I2'],
      async run(stage) {
        const mill = await stage.mill()
        const heard: string[] = []
        const job = numberedJob(stage, {
          attempts: 2,
          hooks: {
            onStart: ({ attempt }) => heard.push(`start ${attempt}`),
            onProgress: (_job, progress) => heard.push(`progress ${String(progress)}`),
            onFailed: (_job, error, final) => heard.push(`failed ${error instanceof Error && error.message} ${final}`),
            onComplete: (_job, result) => heard.push(`complete ${String(result)}`),
          },
          run: async ({ payload, progress, job: { attempt } }) => {
            await progress(attempt * 10)
            if (payload.n === 2 || attempt === 1) throw new Error('no')
            return 'yes'
          },
        })
        const seen = record(mill)
        await mill.work([job], { concurrency: 1 })
        await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 2, 'the end of the first')
        await mill.enqueue(job, { n: 2 })
        await stage.until(SOON_MS, () => seen.settled.length === 4, 'the end of the second')
        const twice = ['start 1', 'progress 10', 'failed no false', 'start 2', 'progress 20']
        assert.deepEqual(heard, [...twice, 'complete yes', ...twice, 'failed no true'])
      },
    },
    {
      // A03
      name: 'progress is visible to others while the job runs',
      guarantees: ['I2'],
      ...need(inspection),
      async run(stage) {
        const mill = await stage.mill()
        const watcher = await stage.mill(await stage.other())
        const [half, hold] = [gate(), gate()]
        const job = numberedJob(stage, {
          run: async ({ progress }) => {
            assert.equal(await progress({ phase: 'half', percent: 50 }), true)
            half.open()
            await hold.opened
          },
        })
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.within(SOON_MS, half.opened, 'the first progress')
        const view = await watcher.job(id)
        assert.deepEqual([view?.state, view?.progress], ['in_progress', { phase: 'half', percent: 50 }])
        hold.open()
      },
    },
    {
      // A46 A60
      name: 'every handler sees its own tenant, however many run at once',
      guarantees: ['I12'],
      async run(stage) {
        const mill = await stage.mill()
        const mixed: string[] = []
        let ran = 0
        const job = numberedJob(stage, {
          run: async ({ payload, job: { tenant } }) => {
            for (let turn = 0; turn < 5; turn += 1) {
              await stage.harness.clock.sleep((payload.n * 7 + turn * 3) % 11)
              const seen = currentTenant()
              if (seen?.orgId !== `org-${payload.n}` || tenant?.orgId !== seen.orgId) mixed.push(`${payload.n}`)
            }
            ran += 1
          },
        })
        for (let n = 0; n < 30; n += 1) await mill.enqueue(job, { n }, { tenant: { orgId: `org-${n}` } })
        await mill.work([job], { concurrency: 30 })
        await stage.until(SOON_MS, () => ran === 30, 'the end of all jobs')
        assert.deepEqual(mixed, [])
        assert.equal(currentTenant(), null)
      },
    },
    {
      name: 'a running job that another view cancels has its signal aborted and leaves no outcome',
      guarantees: ['I3'],
      ...need(cancellation, inspection),
      async run(stage) {
        const [mill, rival] = [await stage.mill(), await stage.mill(await stage.other())]
        const running = gate()
        const aborted = Promise.withResolvers<unknown>()
        const job = numberedJob(stage, {
          run: ({ signal }) =>
            new Promise((resolve) => {
              running.open()
              signal.addEventListener('abort', () => {
                aborted.resolve(signal.reason)
                resolve('too late')
              })
            }),
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.within(SOON_MS, running.opened, 'the start')
        assert.equal(await rival.cancel(id, { who: 'ann', reason: 'wrong order' }), true)
        const reason = await stage.within(SOON_MS, aborted.promise, 'the abort')
        assert.ok(reason instanceof LeaseLostError && reason.reason === 'cancelled')
        await stage.until(SOON_MS, () => seen.lost.length === 1, 'the loss')
        await stage.harness.advance(200)
        assert.deepEqual([seen.lost, seen.settled], [[{ id, reason: 'cancelled' }], []])
        const view = await mill.job(id)
        assert.deepEqual([view?.state, view?.result], ['cancelled', null])
      },
    },
  ],
}
