import assert from 'node:assert/strict'
import type { Case, CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { deadLetters, need, retryDelay } from '../../needs.ts'
import { first, rejection } from '../../stage.ts'

/** What a foreign producer may have written. */
const foreign: readonly { readonly what: string; readonly payload: string; readonly code: string }[] = [
  { what: 'a payload that fails its schema', payload: '{"n":"one"}', code: 'ERR_PAYLOAD_INVALID' },
  { what: 'a payload that is not JSON', payload: '{"n":', code: 'ERR_PAYLOAD_NOT_JSON' },
]

const refusedBeforeRunning = foreign.map(
  ({ what, payload, code }): Case => ({
    // B189 X023
    name: `${what}, from a foreign producer, is dead at once and never runs`,
    guarantees: ['I5', 'I9'],
    ...need(deadLetters),
    async run(stage) {
      const mill = await stage.mill()
      let starts = 0
      const job = numberedJob(stage, {
        attempts: 5,
        run: () => {
          starts += 1
        },
      })
      const { id } = await stage.put({ payload, attempts: 5 })
      const seen = record(mill)
      await mill.work([job])
      await stage.until(SOON_MS, () => seen.settled.length === 1, 'the outcome')
      assert.deepEqual([starts, seen.kinds(id)], [0, ['dead']])
      const letter = first((await stage.engine.deadLetters?.list({ limit: 5 })) ?? [])
      assert.deepEqual([letter.job.id, letter.error.code, letter.job.payload], [id, code, payload])
      assert.match(letter.error.message, /^Invalid payload:/)
    },
  }),
)

export const payloads: CaseFile = {
  level: 'client',
  concept: 'Payloads',
  cases: [
    {
      // A37
      name: 'a payload that fails its schema is refused at enqueue and nothing is stored',
      guarantees: ['I1'],
      async run(stage) {
        const mill = await stage.mill(stage.engine, { payloadBytesMax: 100 })
        const job = numberedJob(stage)
        const wrong: { readonly n: number } = JSON.parse('{"n":"one"}')
        assert.equal(await rejection(mill.enqueue(job, wrong)), 'ERR_PAYLOAD_INVALID')
        assert.equal(await rejection(mill.enqueueMany(job, [{ n: 1 }, wrong])), 'ERR_PAYLOAD_INVALID')
        const large = { n: 1, padding: 'x'.repeat(200) }
        assert.equal(await rejection(mill.enqueue(job, large)), 'ERR_PAYLOAD_TOO_LARGE')
        await stage.expectCounts({})
      },
    },
    ...refusedBeforeRunning,
    {
      name: 'a payload stored under an older version is upcast before it runs',
      guarantees: ['I1'],
      async run(stage) {
        const mill = await stage.mill()
        const ran: number[] = []
        const job = numberedJob(stage, {
          version: 3,
          upcast: (payload, from) => ({ n: Number(payload) * 100 + from }),
          run: ({ payload }) => ran.push(payload.n),
        })
        await stage.put({ payload: '7', payloadVersion: 1 })
        await stage.put({ payload: '{"n":1}', payloadVersion: 3 })
        const seen = record(mill)
        await mill.work([job], { concurrency: 1 })
        await stage.until(SOON_MS, () => seen.settled.length === 2, 'both outcomes')
        assert.deepEqual(
          [...ran].sort((a, b) => a - b),
          [1, 701],
        )
      },
    },
    {
      name: 'a payload of a newer version is left for a newer worker and uses no attempt',
      guarantees: ['I2'],
      ...need(retryDelay),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { run: () => assert.fail('an older worker ran a newer payload') })
        const { id } = await stage.put({ payload: '{"m":1}', payloadVersion: 2 })
        const seen = record(mill)
        await mill.work([job])
        await stage.until(SOON_MS, () => seen.settled.length === 1, 'the outcome')
        assert.deepEqual(seen.kinds(id), ['release'])
        await stage.expectCounts({ delayed: 1 })
      },
    },
  ],
}
