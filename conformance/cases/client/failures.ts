import assert from 'node:assert/strict'
import { NonRetryable, RetryAfter } from '../../../src/errors.ts'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { deadLetters, inspection, need, RETRY_MS, retryDelay } from '../../needs.ts'
import { first } from '../../stage.ts'

export const failures: CaseFile = {
  level: 'client',
  concept: 'What becomes of a failure',
  cases: [
    {
      // B182
      name: 'a handler that fails once and then succeeds is run exactly twice',
      guarantees: ['I2'],
      async run(stage) {
        const mill = await stage.mill()
        const starts: number[] = []
        const job = numberedJob(stage, {
          run: ({ job: { attempt } }) => {
            starts.push(attempt)
            if (attempt === 1) throw new Error('once')
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 2, 'both outcomes')
        assert.deepEqual(
          [starts, seen.kinds(id)],
          [
            [1, 2],
            ['retry', 'complete'],
          ],
        )
        await stage.expectCounts({ completed: 1 })
      },
    },
    {
      // A40 B48 B123 B180
      name: 'a job that always fails is started exactly as often as allowed and is then dead',
      guarantees: ['I5'],
      async run(stage) {
        const mill = await stage.mill()
        let starts = 0
        const job = numberedJob(stage, {
          attempts: 4,
          run: () => {
            starts += 1
            throw new Error('always')
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 4, 'all outcomes')
        await stage.harness.advance(500)
        assert.deepEqual([starts, seen.kinds(id)], [4, ['retry', 'retry', 'retry', 'dead']])
        await stage.expectCounts({ dead: 1 })
      },
    },
    {
      // A04 B201
      name: 'a dead letter keeps the error of its last attempt, redacted',
      guarantees: ['I9', 'I12'],
      ...need(deadLetters),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, {
          attempts: 1,
          run: () => {
            throw new TypeError('cannot mail ann@example.com')
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 1, 'the outcome')
        const letter = first((await stage.engine.deadLetters?.list({ limit: 5 })) ?? [])
        assert.deepEqual(
          [letter.job.id, letter.error.name, letter.error.message],
          [id, 'TypeError', 'cannot mail [email]'],
        )
      },
    },
    {
      // X023
      name: 'NonRetryable makes a dead letter at once, whatever attempts are left',
      guarantees: ['I5'],
      async run(stage) {
        const mill = await stage.mill()
        let starts = 0
        const job = numberedJob(stage, {
          attempts: 5,
          run: () => {
            starts += 1
            throw new NonRetryable('never')
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 1, 'the outcome')
        await stage.harness.advance(200)
        assert.deepEqual([starts, seen.kinds(id)], [1, ['dead']])
      },
    },
    {
      name: 'RetryAfter chooses the next time and uses an attempt',
      guarantees: ['I2'],
      ...need(retryDelay),
      async run(stage) {
        const mill = await stage.mill()
        const starts: { readonly attempt: number; readonly atMs: number }[] = []
        const job = numberedJob(stage, {
          run: ({ job: { attempt } }) => {
            starts.push({ attempt, atMs: stage.nowMs })
            if (attempt === 1) throw new RetryAfter(RETRY_MS)
          },
        })
        await mill.work([job])
        await mill.enqueue(job, { n: 1 })
        await stage.until(RETRY_MS + SOON_MS, () => starts.length === 2, 'both starts')
        assert.deepEqual(
          starts.map(({ attempt }) => attempt),
          [1, 2],
        )
        assert.ok((starts[1]?.atMs ?? 0) - (starts[0]?.atMs ?? 0) >= RETRY_MS, 'retried before its time')
      },
    },
    {
      // A42 B47
      name: 'a backoff keeps its distance between starts',
      guarantees: ['I2'],
      ...need(retryDelay),
      async run(stage) {
        const mill = await stage.mill()
        const startsMs: number[] = []
        const job = numberedJob(stage, {
          attempts: 3,
          backoff: { kind: 'exponential', base: 300 },
          run: () => {
            startsMs.push(stage.nowMs)
            throw new Error('again')
          },
        })
        await mill.work([job])
        await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => startsMs.length === 3, 'all starts')
        const gaps = startsMs.slice(1).map((atMs, index) => atMs - (startsMs[index] ?? 0))
        assert.ok((gaps[0] ?? 0) >= 300 && (gaps[1] ?? 0) >= 600, `gaps of ${gaps.join(' and ')} ms`)
      },
    },
    {
      // A09 A43 B88
      name: 'a handler that runs too long is aborted, and that counts as a failed attempt',
      guarantees: ['I2', 'I6'],
      async run(stage) {
        const mill = await stage.mill()
        const reasons: unknown[] = []
        const job = numberedJob(stage, {
          attempts: 2,
          timeout: 200,
          run: ({ signal }) =>
            new Promise((_resolve, reject) => {
              signal.addEventListener('abort', () => {
                reasons.push(Reflect.get(signal.reason, 'code'))
                reject(signal.reason)
              })
            }),
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 2, 'both outcomes')
        assert.deepEqual(
          [reasons, seen.kinds(id)],
          [
            ['ERR_JOB_TIMEOUT', 'ERR_JOB_TIMEOUT'],
            ['retry', 'dead'],
          ],
        )
      },
    },
    {
      name: 'a handler that never settles is given up at its timeout',
      guarantees: ['I5', 'I6'],
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { attempts: 1, timeout: 200, run: () => new Promise(() => {}) })
        const seen = record(mill)
        const worker = await mill.work([job], { concurrency: 1 })
        await mill.enqueueMany(job, [{ n: 1 }, { n: 2 }])
        await stage.until(SOON_MS, () => seen.settled.length === 2, 'both outcomes')
        assert.deepEqual([seen.settled.map(({ outcome }) => outcome.kind), worker.running], [['dead', 'dead'], 0])
      },
    },
    {
      // X141
      name: 'whatever a handler throws becomes a readable error',
      guarantees: ['I9'],
      ...need(inspection),
      async run(stage) {
        const mill = await stage.mill()
        const thrown: readonly unknown[] = [undefined, 'text', { cause: 'object' }, null]
        const job = numberedJob(stage, {
          attempts: 1,
          run: ({ payload }) => {
            throw thrown[payload.n]
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const receipts = await mill.enqueueMany(
          job,
          thrown.map((_, n) => ({ n })),
        )
        await stage.until(SOON_MS, () => seen.settled.length === thrown.length, 'all outcomes')
        for (const { id } of receipts) {
          const view = await mill.job(id)
          assert.deepEqual([view?.state, view?.error?.code], ['dead_letter', 'ERR_THROWN'])
        }
      },
    },
    {
      name: 'a result that is not JSON makes a dead letter and is not retried',
      guarantees: ['I5'],
      async run(stage) {
        const mill = await stage.mill()
        let starts = 0
        const job = numberedJob(stage, {
          run: () => {
            starts += 1
            return 10n
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 1, 'the outcome')
        assert.deepEqual([starts, seen.kinds(id)], [1, ['dead']])
      },
    },
  ],
}
