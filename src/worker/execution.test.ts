import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'
import { type Mill, open } from '../client/mill.ts'
import type { MillOptions } from '../client/options.ts'
import { NonRetryable, Offline, RetryAfter } from '../errors.ts'
import type { MillEvents } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'

interface Stage {
  readonly mill: Mill
  readonly clock: TestClock
  readonly settled: MillEvents['job.settled'][]
}

async function staged(t: { after(run: () => Promise<void>): void }, options: MillOptions = {}): Promise<Stage> {
  const clock = new TestClock()
  const mill = await open('memory:', { random: () => 0, clock, ...options })
  const settled: MillEvents['job.settled'][] = []
  mill.events.on('job.settled', (event) => void settled.push(event))
  t.after(() => mill.close())
  return { mill, clock, settled }
}

const kinds = (settled: readonly MillEvents['job.settled'][]) => settled.map(({ outcome }) => outcome.kind)

async function turns(count = 20): Promise<void> {
  for (let left = count; left > 0; left -= 1) await turn()
}

// A40 A42 A64 A66 B90
test('a failing job is retried after its backoff and dead after its last attempt', async (t) => {
  const { mill, clock, settled } = await staged(t)
  const starts: number[] = []
  const failed: [number, boolean][] = []
  const job = defineJob({
    type: 'fails',
    backoff: { kind: 'exponential', base: 100 },
    hooks: { onFailed: ({ attempt }, _error, final) => void failed.push([attempt, final]) },
    run() {
      starts.push(clock.monotonicMs())
      throw new Error('no')
    },
  })
  const { id } = await mill.enqueue(job, null)
  await mill.work([job])
  await clock.advance('10s')
  assert.deepEqual(starts, [0, 100, 300])
  assert.deepEqual(kinds(settled), ['retry', 'retry', 'dead'])
  assert.deepEqual(failed, [
    [1, false],
    [2, false],
    [3, true],
  ])
  const view = await mill.job(id)
  assert.equal(view?.state, 'dead_letter')
  assert.equal(view?.error?.message, 'no')
})

// A53: what the enqueue said is stored with the job and wins over the definition.
test('backoff, timeout and attempts of the enqueue override those of the definition', async (t) => {
  const { mill, clock, settled } = await staged(t)
  const job = defineJob({ type: 'own', timeout: '1h', attempts: 9, run: () => new Promise(() => {}) })
  await mill.enqueue(job, null, { timeout: 200, attempts: 2, backoff: { kind: 'fixed', delay: 300 } })
  await mill.work([job])
  await clock.advance(200)
  assert.deepEqual(settled[0]?.outcome, {
    kind: 'retry',
    delayMs: 300,
    error: settled[0]?.outcome.kind === 'retry' ? settled[0].outcome.error : null,
  })
  await clock.advance(500)
  assert.deepEqual(kinds(settled), ['retry', 'dead'])
})

// X023
test('a payload that its schema refuses, or that crashes its schema, is dead at once', async (t) => {
  const { mill, settled } = await staged(t)
  let ran = 0
  const run = () => {
    ran += 1
  }
  const strict = defineJob({ type: 'strict', payload: z.object({ n: z.number() }), run })
  const crashing = defineJob({
    type: 'crashing',
    payload: z.unknown().transform((given) => {
      if (given === 1) throw new TypeError('schema bug')
      return given
    }),
    run,
  })
  // A foreign producer knows no schema.
  await mill.enqueue(defineJob({ type: 'strict' }), { n: 'text' })
  await mill.enqueue(defineJob({ type: 'crashing' }), 1)
  await mill.work([strict, crashing])
  await turns()
  assert.deepEqual(kinds(settled), ['dead', 'dead'])
  for (const { outcome } of settled) assert.ok(outcome.kind === 'dead' && outcome.error.code === 'ERR_PAYLOAD_INVALID')
  assert.equal(ran, 0)
})

test('a payload of a newer version is given back, an older one is upcast', async (t) => {
  const { mill, settled } = await staged(t)
  const seen: unknown[] = []
  const job = defineJob({
    type: 'versioned',
    version: 2,
    upcast: (payload, from) => ({ from, was: payload }),
    run: ({ payload }) => void seen.push(payload),
  })
  const { id } = await mill.enqueue(defineJob({ type: 'versioned', version: 3 }), 'new')
  await mill.enqueue(defineJob({ type: 'versioned' }), 'old')
  await mill.work([job])
  await turns()
  assert.deepEqual(seen, [{ from: 1, was: 'old' }])
  assert.deepEqual(kinds(settled).sort(), ['complete', 'release'])
  assert.equal((await mill.job(id))?.attempt, 0)
})

// X023: the errors a handler may throw on purpose, and those it should not.
test('what a handler throws decides what becomes of the job', async (t) => {
  const { mill, clock, settled } = await staged(t)
  const thrown: Record<string, unknown> = {
    final: new NonRetryable('never'),
    later: new RetryAfter('7s'),
    offline: new Offline('no net', { delay: '9s' }),
    text: 'just text',
    nothing: undefined,
    gone: Object.assign(new Error('gone'), { status: 410 }),
  }
  const job = defineJob({
    type: 'throws',
    backoff: { kind: 'fixed', delay: '1h' },
    run({ payload }) {
      throw thrown[String(payload)]
    },
  })
  const names = Object.keys(thrown)
  const receipts = await mill.enqueueMany(job, names)
  await mill.work([job], { concurrency: 10 })
  await clock.advance(1)
  const outcomes = names.map((name, index) => {
    const event = settled.find(({ job: { id } }) => id === receipts[index]?.id)
    const outcome = event?.outcome
    return [name, outcome?.kind, outcome && 'delayMs' in outcome ? outcome.delayMs : null]
  })
  assert.deepEqual(outcomes, [
    ['final', 'dead', null],
    ['later', 'retry', 7_000],
    ['offline', 'release', 9_000],
    ['text', 'retry', 3_600_000],
    ['nothing', 'retry', 3_600_000],
    ['gone', 'dead', null],
  ])
  assert.equal((await mill.job(receipts[2]?.id ?? ''))?.attempt, 0)
})

test('a result that is not JSON, or too large, makes the job dead and is not retried', async (t) => {
  const { mill, settled } = await staged(t, { payloadBytesMax: 100 })
  const results: Record<string, unknown> = { bigint: 1n, function: () => {}, large: 'x'.repeat(200) }
  const job = defineJob({ type: 'answers', run: ({ payload }) => results[String(payload)] })
  await mill.enqueueMany(job, Object.keys(results))
  await mill.work([job])
  await turns()
  const codes = settled.map(({ outcome }) => (outcome.kind === 'dead' ? outcome.error.code : outcome.kind))
  assert.deepEqual(codes, ['ERR_RESULT_NOT_JSON', 'ERR_RESULT_NOT_JSON', 'ERR_RESULT_TOO_LARGE'])
})

// A58 A61 A68 X036: the order, and that a broken hook changes nothing.
test('hooks watch in order, and their errors are reported and change nothing', async (t) => {
  const { mill, settled } = await staged(t)
  const calls: unknown[] = []
  const errors: unknown[] = []
  mill.events.on('hook.error', ({ hook, error }) => errors.push([hook, String(error)]))
  const job = defineJob({
    type: 'hooked',
    hooks: {
      onStart({ attempt }) {
        calls.push(['start', attempt])
        throw new Error('start hook')
      },
      onProgress: (_job, progress) => void calls.push(['progress', progress]),
      async onComplete(_job, result) {
        calls.push(['complete', result, settled.length])
        throw new Error('complete hook')
      },
    },
    async run({ progress }) {
      calls.push('run')
      assert.equal(await progress(50), true)
      assert.equal(await progress({ done: 1 }), true)
      return 'result'
    },
  })
  const { id } = await mill.enqueue(job, null)
  await mill.work([job])
  await turns()
  assert.deepEqual(calls, [['start', 1], 'run', ['progress', 50], ['progress', { done: 1 }], ['complete', 'result', 1]])
  assert.deepEqual(errors, [
    ['onStart', 'Error: start hook'],
    ['onComplete', 'Error: complete hook'],
  ])
  assert.deepEqual(kinds(settled), ['complete'])
  assert.deepEqual((await mill.job(id))?.progress, { done: 1 })
})

test('progress that is not JSON is thrown into the handler, waited for or not', async (t) => {
  const { mill, settled } = await staged(t)
  const job = defineJob({
    type: 'careless',
    attempts: 1,
    run({ progress }) {
      void progress(1n)
    },
  })
  await mill.enqueue(job, null)
  await mill.work([job])
  await turns()
  assert.ok(settled[0]?.outcome.kind === 'dead' && settled[0].outcome.error.code === 'ERR_OPTION_INVALID')
})

// A62
test('the duration runs from the start of the handler to its end', async (t) => {
  const { mill, clock, settled } = await staged(t)
  const job = defineJob({ type: 'slow', run: () => clock.sleep(250) })
  const { id } = await mill.enqueue(job, null)
  await mill.work([job])
  await clock.advance(250)
  assert.equal(settled[0]?.durationMs, 250)
  assert.equal((await mill.job(id))?.durationMs, 250)
})

test('a handler sees its job, and takes apart its context without losing anything', async (t) => {
  const { mill } = await staged(t)
  const job = defineJob({
    type: 'seen',
    run: ({ job: { id, type, attempt, attempts, priority, key, token }, signal }) => {
      assert.ok(token.length > 0)
      assert.equal(signal.aborted, false)
      return { id, type, attempt, attempts, priority, key }
    },
  })
  const receipt = await mill.enqueue(job, null, { key: 'k', priority: 2, attempts: 7 })
  await mill.work([job])
  const expected = { id: receipt.id, type: 'seen', attempt: 1, attempts: 7, priority: 2, key: 'k' }
  assert.deepEqual(await mill.result(receipt), expected)
})

// I3
test('a cancelled job loses its lease: the signal aborts, the slot is free, nothing is settled', async (t) => {
  const { mill, settled } = await staged(t)
  const lost: string[] = []
  mill.events.on('lease.lost', ({ reason }) => lost.push(reason))
  let signalled: unknown = null
  let afterwards: boolean | null = null
  const job = defineJob({
    type: 'long',
    async run({ signal, progress }) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      signalled = signal.reason
      afterwards = await progress(1)
      return 'too late'
    },
  })
  const { id } = await mill.enqueue(job, null)
  const worker = await mill.work([job], { concurrency: 1 })
  await turns()
  assert.equal(worker.running, 1)
  assert.equal(await mill.cancel(id), true)
  await turns()
  assert.deepEqual(lost, ['cancelled'])
  assert.equal(Reflect.get(Object(signalled), 'code'), 'ERR_LEASE_LOST')
  assert.equal(Reflect.get(Object(signalled), 'reason'), 'cancelled')
  assert.equal(afterwards, false)
  assert.equal(worker.running, 0)
  assert.deepEqual(settled, [])
  assert.equal((await mill.job(id))?.state, 'cancelled')
})
