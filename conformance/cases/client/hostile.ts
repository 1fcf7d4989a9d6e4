import assert from 'node:assert/strict'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { inspection, need } from '../../needs.ts'

/** What no database keeps as text: NUL, and either half of a pair of surrogates without the other. */
const NUL = '\u0000'
const HIGH = '\ud83d'
const LOW = '\ude00'

/** Any of these in an error's text once made a settle fail until the lease ran out. */
const unstorable: readonly Error[] = [
  new Error('😀'.repeat(5_000)),
  new Error(`x${'😀'.repeat(5_000)}`),
  new Error(`${'👍👍'.slice(0, 3)} was cut`),
  new Error(`a${NUL}b${HIGH}c${LOW}d`),
  Object.assign(new Error('name'), { name: `A${NUL}B${HIGH}` }),
  Object.assign(new Error('code'), { code: `A${NUL}B${LOW}` }),
  Object.assign(new Error('long name'), { name: '😀'.repeat(500), code: `x${'😀'.repeat(500)}` }),
  Object.assign(new Error('stack'), { stack: `Error: ${NUL}${HIGH}\n${`    at ${'😀'.repeat(9)}\n`.repeat(100)}` }),
]

function throwing(): never {
  throw new Error('hands off')
}

function revoked<Target extends object>(target: Target): Target {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

/** Values that throw when they are looked at. */
const hostile: readonly unknown[] = [
  revoked({}),
  revoked(new Error('revoked')),
  revoked(() => {}),
  new Proxy({}, { get: throwing, has: throwing, getPrototypeOf: throwing, ownKeys: throwing }),
  new Proxy(new Error('trapped'), { get: throwing, getPrototypeOf: throwing }),
  Object.defineProperties(new Error('getters'), {
    ...{ name: { get: throwing }, message: { get: throwing }, stack: { get: throwing } },
    ...{ code: { get: throwing }, status: { get: throwing }, cause: { get: throwing }, delay: { get: throwing } },
  }),
  { toString: throwing, toJSON: throwing, [Symbol.toPrimitive]: throwing },
]

export const hostileFailures: CaseFile = {
  level: 'client',
  concept: 'Failures that are hard to keep',
  cases: [
    {
      name: 'an error whose text no database keeps as it is becomes a failure like any other, at once',
      guarantees: ['I5', 'I9', 'I12'],
      ...need(inspection),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, {
          attempts: 2,
          run: ({ payload }) => {
            throw unstorable[payload.n]
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const receipts = await mill.enqueueMany(
          job,
          unstorable.map((_, n) => ({ n })),
        )
        await stage.until(SOON_MS, () => seen.settled.length === 2 * unstorable.length, 'all outcomes')
        assert.deepEqual(seen.lost, [])
        for (const [n, { id }] of receipts.entries()) {
          const view = await mill.job(id)
          assert.deepEqual([view?.state, view?.attempt], ['dead_letter', 2], `of error ${n}`)
          const { name = '', code, message = '', stack } = view?.error ?? {}
          const kept = [name, code ?? '', message, stack ?? '']
          assert.ok(
            kept.every((text) => text.isWellFormed() && !text.includes(NUL)),
            `of error ${n}`,
          )
          // Whatever had to be taken out or cut off, the error can still be told from the others.
          const told = unstorable[n]?.message.slice(0, 1)
          assert.ok(
            message.length > 0 && (told === HIGH || message.startsWith(told ?? '')),
            `of error ${n}: ${message}`,
          )
          const failures = (await mill.history(id)).filter((event) => event.name === 'failed')
          assert.equal(failures.length, 2, `the history of error ${n} tells both failures`)
        }
      },
    },
    {
      name: 'a result and a progress with any text in them are kept as they are',
      guarantees: ['I1'],
      ...need(inspection),
      async run(stage) {
        const mill = await stage.mill()
        const kept = { [`key ${NUL}${HIGH}`]: [`a${NUL}b`, `c${HIGH}d`, `e${LOW}f`, '😀'.repeat(200)] }
        const errors: unknown[] = []
        mill.events.on('worker.error', ({ error }) => errors.push(error))
        const job = numberedJob(stage, {
          attempts: 1,
          run: async ({ progress }) => {
            assert.equal(await progress(kept), true)
            return kept
          },
        })
        const seen = record(mill)
        await mill.work([job])
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 1, 'the outcome')
        assert.deepEqual([seen.kinds(id), errors], [['complete'], []])
        const view = await mill.job(id)
        assert.deepEqual([view?.result, view?.progress], [kept, kept])
      },
    },
    {
      name: 'a thrown value that throws when it is looked at ends its own attempt and no other',
      guarantees: ['I5', 'I9'],
      async run(stage) {
        const mill = await stage.mill()
        const errors: unknown[] = []
        mill.events.on('worker.error', ({ error }) => errors.push(error))
        const job = numberedJob(stage, {
          attempts: 2,
          run: ({ payload }) => {
            if (payload.n < hostile.length) throw hostile[payload.n]
            if (payload.n < 2 * hostile.length) return Promise.reject(hostile[payload.n - hostile.length])
            return payload.n
          },
          hooks: {
            onStart: () => Promise.reject(hostile[0]),
            onFailed: () => {
              throw hostile[0]
            },
          },
        })
        const count = 3 * hostile.length
        const seen = record(mill)
        await mill.work([job], { concurrency: count })
        const receipts = await mill.enqueueMany(
          job,
          Array.from({ length: count }, (_, n) => ({ n })),
        )
        await stage.until(SOON_MS, () => seen.settled.length === 5 * hostile.length, 'all outcomes')
        for (const [n, { id }] of receipts.entries()) {
          const expected = n < 2 * hostile.length ? ['retry', 'dead'] : ['complete']
          assert.deepEqual(seen.kinds(id), expected, `of value ${n % hostile.length}`)
        }
        assert.deepEqual([seen.lost, errors], [[], []])
        await stage.expectCounts({ completed: hostile.length, dead: 2 * hostile.length })
      },
    },
    {
      name: 'a returned value that throws when it is looked at makes a dead letter and harms no other job',
      guarantees: ['I5'],
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { run: ({ payload }) => hostile[payload.n] ?? payload.n })
        const seen = record(mill)
        await mill.work([job], { concurrency: hostile.length + 1 })
        const receipts = await mill.enqueueMany(
          job,
          Array.from({ length: hostile.length + 1 }, (_, n) => ({ n })),
        )
        const isOver = (id: string): boolean => seen.kinds(id).some((kind) => kind === 'dead' || kind === 'complete')
        await stage.until(SOON_MS, () => receipts.every(({ id }) => isOver(id)), 'all outcomes')
        assert.deepEqual(seen.lost, [])
        assert.equal(seen.kinds(receipts.at(-1)?.id ?? '').at(-1), 'complete')
      },
    },
  ],
}
