import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { z } from 'zod'
import type { Lease } from '../engine/outcome.ts'
import { MemoryEngine } from '../engines/memory/index.ts'
import {
  ClosedError,
  JobEndedError,
  OptionError,
  PayloadError,
  UnknownJobError,
  UnknownTypeError,
  UnsupportedError,
  WaitTimeoutError,
} from '../errors.ts'
import type { MillEvents } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'
import { type Mill, open } from './mill.ts'
import type { MillOptions } from './options.ts'

const greet = defineJob({ type: 'greet', payload: z.object({ name: z.string() }) })

async function opened(t: TestContext, options: MillOptions = {}): Promise<{ mill: Mill; clock: TestClock }> {
  const clock = new TestClock()
  const mill = await open('memory:', { clock, ...options })
  t.after(() => mill.close())
  return { mill, clock }
}

/** Claims one job as another worker would. */
async function claimOne(mill: Mill): Promise<{ lease: Lease; settle(outcome: 'complete' | 'dead'): Promise<void> }> {
  const consumer = await mill.engine.consume({ types: [{ type: 'greet', leaseMs: 60_000 }], worker: 'host:1:a' })
  const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: new AbortController().signal })
  assert.ok(lease)
  const error = { name: 'Error', code: null, message: 'no such person', stack: null }
  return {
    lease,
    settle: async (kind) => {
      const outcome =
        kind === 'complete'
          ? ({ kind, result: '{"said":"hello"}', durationMs: 1 } as const)
          : ({ kind, error } as const)
      assert.deepEqual(await consumer.settle([{ lease, outcome }]), [])
    },
  }
}

// A03 B106
test('an enqueued job can be looked at', async (t) => {
  const { mill } = await opened(t)
  const receipt = await mill.enqueue(greet, { name: 'Ann' })
  assert.equal(receipt.status, 'enqueued')
  const view = await mill.job(receipt.id)
  assert.deepEqual([view?.type, view?.state, view?.attempt, view?.payload], ['greet', 'queued', 0, '{"name":"Ann"}'])
  assert.equal(await mill.job('01JD3ZQ4N00000000000000000'), null)
  assert.deepEqual(
    (await mill.history(receipt.id)).map(({ name }) => name),
    ['enqueued'],
  )
  assert.equal((await mill.counts()).greet?.ready, 1)
})

test('enqueueMany keeps the order of its payloads; jobs lists newest first', async (t) => {
  const { mill } = await opened(t)
  const receipts = await mill.enqueueMany(greet, [{ name: 'a' }, { name: 'b' }, { name: 'c' }])
  const listed = await mill.jobs({ type: 'greet' })
  assert.deepEqual(
    listed.map(({ id }) => id),
    receipts.map(({ id }) => id).toReversed(),
  )
  assert.equal((await mill.jobs({ limit: 2 })).length, 2)
  assert.deepEqual(await mill.enqueueMany(greet, []), [])
})

// B106 B107 X026
test('a second enqueue of a key returns the first id and says duplicate', async (t) => {
  const { mill } = await opened(t)
  const first = await mill.enqueue(greet, { name: 'a' }, { key: 'k' })
  const second = await mill.enqueue(greet, { name: 'b' }, { key: 'k' })
  assert.deepEqual(second, { id: first.id, status: 'duplicate' })
})

test('a key for many jobs at once is refused: all but the first would be duplicates', async (t) => {
  const { mill } = await opened(t)
  for (const options of [{ key: 'k' }, { latest: 'k' }]) {
    // @ts-expect-error the type forbids it; a caller without types can still do it
    await assert.rejects(mill.enqueueMany(greet, [{ name: 'a' }, { name: 'b' }], options), OptionError)
  }
  assert.deepEqual(await mill.jobs(), [])
})

// A17 X016
test('a type is enqueued by name only if its definition is known', async (t) => {
  const { mill } = await opened(t, { jobs: [greet] })
  assert.equal((await mill.enqueue('greet', { name: 'a' })).status, 'enqueued')
  await assert.rejects(
    mill.enqueue('depart', {}),
    (error) => error instanceof UnknownTypeError && /'depart'.*known: greet/.test(error.message),
  )
  await assert.rejects(mill.enqueue('greet', { name: 5 }), PayloadError)
})

test('two definitions of one type contradict each other', async () => {
  const jobs = [greet, defineJob({ type: 'greet' })]
  await assert.rejects(open('memory:', { jobs }), /'jobs' has two definitions of 'greet'/)
  await (await open('memory:', { jobs: [greet, greet] })).close()
})

// B189
test('bad input stores nothing', async (t) => {
  const { mill } = await opened(t, { payloadBytesMax: 50 })
  // @ts-expect-error the payload's type is the schema's
  await assert.rejects(mill.enqueue(greet, { name: 5 }), PayloadError)
  await assert.rejects(mill.enqueue(greet, { name: 'x'.repeat(60) }), /ERR_PAYLOAD_TOO_LARGE|above the limit of 50/)
  await assert.rejects(mill.enqueue(greet, { name: 'a' }, { priority: 11 }), OptionError)
  await assert.rejects(mill.enqueueMany(greet, [{ name: 'a' }, { name: 'x'.repeat(60) }]), PayloadError)
  await assert.rejects(mill.enqueue(greet, { name: 'a' }, { within: {} }), UnsupportedError)
  assert.deepEqual(await mill.jobs(), [])
})

test('settings that make no sense are refused before anything is opened', async () => {
  for (const payloadBytesMax of [0, -1, 1.5, Number.NaN]) {
    await assert.rejects(open('memory:', { payloadBytesMax }), /'payloadBytesMax' is/)
  }
})

test('a listing is bounded and its state is one of the five', async (t) => {
  const { mill } = await opened(t)
  for (const limit of [0, -1, 1.5, Number.NaN, 10_001]) {
    await assert.rejects(mill.jobs({ limit }), /'limit' is .*from 1 to 10000/)
  }
  // @ts-expect-error the type forbids it; a caller without types can still do it
  await assert.rejects(mill.jobs({ state: 'waiting' }), /'state' is 'waiting'; give one of queued, in_progress/)
})

// A03 B36 B52
test('a result is waited for, typed as its handler returns it', async (t) => {
  const { mill } = await opened(t)
  const receipt = await mill.enqueue(greet, { name: 'a' })
  const result = mill.result(receipt)
  const held = await claimOne(mill)
  await held.settle('complete')
  assert.deepEqual(await result, { said: 'hello' })
  assert.deepEqual(await mill.result(receipt.id), { said: 'hello' })
})

test('a job that will never have a result says why', async (t) => {
  const { mill } = await opened(t)
  const dead = await mill.enqueue(greet, { name: 'a' })
  await (await claimOne(mill)).settle('dead')
  const isDead = (error: unknown) =>
    error instanceof JobEndedError && error.code === 'ERR_JOB_DEAD' && /no such person/.test(error.message)
  await assert.rejects(mill.result(dead), isDead)

  const cancelled = await mill.enqueue(greet, { name: 'a' })
  assert.equal(await mill.cancel(cancelled.id), true)
  assert.equal(await mill.cancel(cancelled.id), false)
  const isEnded = (error: unknown) =>
    error instanceof JobEndedError && error.code === 'ERR_JOB_ENDED' && /was cancelled/.test(error.message)
  await assert.rejects(mill.result(cancelled), isEnded)
  await assert.rejects(mill.result('01JD3ZQ4N00000000000000000'), UnknownJobError)
})

test('waiting ends at the timeout, or at the signal with its own reason', async (t) => {
  const { mill, clock } = await opened(t)
  const receipt = await mill.enqueue(greet, { name: 'a' })
  const late = assert.rejects(mill.result(receipt, { timeout: '5s' }), WaitTimeoutError)
  await clock.advance('6s')
  await late

  const abort = new AbortController()
  const given = new Error('the user left')
  const aborted = assert.rejects(mill.result(receipt, { signal: abort.signal }), given)
  abort.abort(given)
  await aborted
})

test('cancel names who and why in the history and as an event', async (t) => {
  const { mill } = await opened(t)
  const { id } = await mill.enqueue(greet, { name: 'a' })
  const heard = mill.events.next('job.cancelled')
  assert.equal(await mill.cancel(id, { who: 'ann', reason: 'a typo' }), true)
  assert.deepEqual(await heard, { id, who: 'ann', reason: 'a typo' })
  const last = (await mill.history(id)).at(-1)
  assert.deepEqual([last?.name, last?.detail], ['cancelled', { who: 'ann', reason: 'a typo' }])
  assert.equal(await mill.cancel('01JD3ZQ4N00000000000000000'), false)
})

// B200
test('the event of an enqueue has the size of the payload in bytes, and not the payload', async (t) => {
  const { mill } = await opened(t)
  const heard: MillEvents['job.enqueued'][] = []
  mill.events.on('job.enqueued', (event) => heard.push(event))
  const { id } = await mill.enqueue(greet, { name: '🜁' })
  assert.deepEqual(heard, [{ id, type: 'greet', status: 'enqueued', bytes: 15 }])
})

test('a listener that throws does not fail the enqueue', async (t) => {
  const lines: string[] = []
  const write = (line: string): number => lines.push(line)
  const { mill } = await opened(t, { log: { debug: write, info: write, warn: write, error: write } })
  mill.events.on('job.enqueued', () => {
    throw new Error('broken listener')
  })
  assert.equal((await mill.enqueue(greet, { name: 'a' })).status, 'enqueued')
  assert.ok(lines.includes('An event listener threw'))
})

test('a closed mill refuses work; closing twice is one closing', async () => {
  const mill = await open('memory:')
  const closing = mill.close()
  assert.equal(mill.close(), closing)
  // Refused from the first moment on, while workers may still drain and the engine is still open.
  await assert.rejects(mill.enqueue(greet, { name: 'a' }), /this mill is closed/)
  await closing
  await assert.rejects(mill.enqueue(greet, { name: 'a' }), ClosedError)
  await assert.rejects(mill.work([greet.handledBy(() => 1)]), ClosedError)
  for (const ask of [() => mill.job('x'), () => mill.jobs(), () => mill.result('x'), () => mill.cancel('x')]) {
    await assert.rejects(ask(), ClosedError)
  }
  await assert.rejects(mill.counts(), ClosedError)
  await assert.rejects(mill.history('x'), ClosedError)
})

test('closing stops the workers first, also one that was still starting', async () => {
  const clock = new TestClock()
  const mill = await open(new MemoryEngine({ clock }), { clock })
  const worker = await mill.work([greet.handledBy(() => 1)])
  const late = mill.work([greet.handledBy(() => 2)])
  const refused = assert.rejects(late, ClosedError)
  await mill.close()
  await worker.stopped
  await refused
})

test('an engine of your own is taken, and one mill closing leaves the other store alone', async () => {
  const engine = new MemoryEngine()
  const mill = await open(engine)
  assert.equal(mill.engine, engine)
  await mill.close()
})
