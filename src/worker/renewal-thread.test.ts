import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker as Thread } from 'node:worker_threads'
import { leaseOf } from '../../test/fixtures/lease.ts'
import { type Mill, open } from '../client/mill.ts'
import type { MillEvents } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { redact } from '../job/error-record.ts'
import { reapOnce } from '../keeper/reaper.ts'
import { systemClock } from '../time/clock.ts'
import type { LeaseRenewer } from './lease-renewer.ts'
import { startRenewalThread } from './lease-renewer.ts'
import type { Renewable } from './renewals.ts'

const LEASE = leaseOf('j', 1)

async function fileUrl(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-renewal-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return `sqlite:${join(folder, 'jobs.db')}`
}

async function opened(t: TestContext, url: string): Promise<Mill> {
  const mill = await open(url)
  t.after(() => mill.close())
  return mill
}

/** Holds this thread's event loop, as a careless handler does. */
function spin(ms: number): void {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

/** Another process in miniature: it reaps in a thread of its own while this one is blocked. */
const REAPER = `
  import { parentPort, workerData } from 'node:worker_threads'
  const { open } = await import(workerData.index)
  const { systemClock } = await import(workerData.engine)
  const { reapOnce } = await import(workerData.reaper)
  const mill = await open(workerData.url)
  const parts = { engine: mill.engine, definitions: new Map(), clock: systemClock, random: Math.random,
    redactor: (text) => text, events: mill.events, worker: 'other' }
  let reaped = 0
  let passes = 0
  parentPort.once('message', () => { stop = true })
  let stop = false
  parentPort.postMessage('ready')
  while (!stop) {
    const { retried, dead } = await reapOnce(parts)
    reaped += retried + dead
    passes += 1
    await systemClock.sleep(20)
  }
  await mill.close()
  parentPort.postMessage({ reaped, passes })
`

async function startReaper(t: TestContext, url: string): Promise<() => Promise<{ reaped: number; passes: number }>> {
  const workerData = {
    url,
    index: new URL('../index.ts', import.meta.url).href,
    engine: new URL('../engine/index.ts', import.meta.url).href,
    reaper: new URL('../keeper/reaper.ts', import.meta.url).href,
  }
  const thread = new Thread(new URL(`data:text/javascript,${encodeURIComponent(REAPER)}`), { workerData })
  t.after(() => thread.terminate())
  await new Promise((resolve) => thread.once('message', resolve))
  return () =>
    new Promise((resolve) => {
      thread.once('message', resolve)
      thread.postMessage('stop')
    })
}

// I3 I6 B98
test('a handler that blocks the event loop far beyond its lease keeps it', { timeout: 120_000 }, async (t) => {
  const url = await fileUrl(t)
  const mill = await opened(t, url)
  const lost: unknown[] = []
  mill.events.on('lease.lost', (event) => lost.push(event))
  const job = defineJob({
    type: 'blocking',
    // Long enough that a machine which stands still for two seconds does not lose it.
    lease: 4_000,
    run() {
      spin(9_000)
      return 'kept'
    },
  })
  const stopReaper = await startReaper(t, url)
  const receipt = await mill.enqueue(job, null)
  await mill.work([job], { reap: false })
  assert.equal(await mill.result(receipt), 'kept')
  const { reaped, passes } = await stopReaper()
  assert.equal(reaped, 0)
  assert.ok(passes > 10, `only ${passes} passes of the reaper`)
  assert.deepEqual(lost, [])
  assert.equal((await mill.job(receipt.id))?.attempt, 1)
})

test('a cancellation by another process aborts the handler', { timeout: 120_000 }, async (t) => {
  const url = await fileUrl(t)
  const [mill, other] = [await opened(t, url), await opened(t, url)]
  let reason: unknown = null
  const job = defineJob({
    type: 'long',
    lease: 4_000,
    run: ({ signal }) =>
      new Promise<void>((resolve) =>
        signal.addEventListener('abort', () => {
          reason = signal.reason
          resolve()
        }),
      ),
  })
  const { id } = await mill.enqueue(job, null)
  const started = mill.events.next('job.started')
  const lost = mill.events.next('lease.lost')
  await mill.work([job])
  await started
  assert.equal(await other.cancel(id), true)
  assert.equal((await lost).reason, 'cancelled')
  assert.equal(Reflect.get(Object(reason), 'code'), 'ERR_LEASE_LOST')
})

test('when the thread cannot open the store, the fault is reported and renewal goes on here', {
  timeout: 120_000,
}, async (t) => {
  const mill = await opened(t, await fileUrl(t))
  Object.defineProperty(mill.engine, 'threadUrl', { value: 'sqlite:/nowhere/at/all/jobs.db' })
  const error = mill.events.next('worker.error')
  const job = defineJob({ type: 'long', lease: 4_000, run: () => sleep(5_500, 'done') })
  const receipt = await mill.enqueue(job, null)
  const lost: unknown[] = []
  mill.events.on('lease.lost', (event) => lost.push(event))
  await mill.work([job], { reap: 50 })
  assert.equal((await error).during, 'renewal thread')
  assert.equal(await mill.result(receipt), 'done')
  assert.deepEqual(lost, [])
  assert.equal((await mill.job(receipt.id))?.attempt, 1)
})

test('what was held when the thread died is renewed here', { timeout: 120_000 }, async () => {
  const failed = Promise.withResolvers<string>()
  const taken = Promise.withResolvers<readonly Renewable[]>()
  const nowMs = systemClock.monotonicMs()
  const times = { leaseMs: 1_000, heldAtMs: nowMs, timeoutMs: 60_000, renewedAtMs: nowMs }
  const held = { handle: 7, ...times, lease: LEASE, slot: null }
  const parts = {
    clock: systemClock,
    consumer: { renew: async () => [] },
    worker: 'w',
    threadUrl: null,
    held: () => [held],
    onLost: () => {},
    onError: (during: string) => failed.resolve(during),
  }
  const closed: string[] = []
  const instead: LeaseRenewer = {
    hold: (leases) => taken.resolve(leases),
    drop: () => {},
    ready: Promise.resolve(),
    close: async () => void closed.push('instead'),
  }
  const renewer = startRenewalThread(parts, 'sqlite:/nowhere/at/all/jobs.db', () => instead)
  renewer.hold([held])
  assert.deepEqual(await taken.promise, [held])
  assert.equal(await failed.promise, 'renewal thread')
  await renewer.ready
  await renewer.close()
  assert.deepEqual(closed, ['instead'])
})

test('the thread opens the store only for a lease that has to be renewed', { timeout: 120_000 }, async (t) => {
  const mill = await opened(t, await fileUrl(t))
  Object.defineProperty(mill.engine, 'threadUrl', { value: 'sqlite:/nowhere/at/all/jobs.db' })
  const errors: unknown[] = []
  mill.events.on('worker.error', (event) => errors.push(event))
  const [brief, long] = [
    defineJob({ type: 'brief', lease: 1_000, run: () => 'done' }),
    defineJob({ type: 'long', lease: 1_000, run: () => sleep(800) }),
  ]
  const worker = await mill.work([brief, long])
  assert.equal(await mill.result(await mill.enqueue(brief, null)), 'done')
  // Long enough for the thread to have looked for leases to renew.
  await sleep(700)
  assert.deepEqual(errors, [])
  const failed = mill.events.next('worker.error')
  await mill.enqueue(long, null)
  assert.equal((await failed).during, 'renewal thread')
  await worker.stop()
})

test('without a living holder the same lease is reaped', { timeout: 120_000 }, async (t) => {
  const mill = await opened(t, await fileUrl(t))
  const job = defineJob({ type: 'dead', lease: 100 })
  await mill.enqueue(job, null)
  const consumer = await mill.engine.consume({ types: [{ type: 'dead', leaseMs: 100 }], worker: 'dying' })
  const { signal } = new AbortController()
  assert.equal((await consumer.claim({ max: 1, waitMs: 0, signal })).length, 1)
  const parts = { engine: mill.engine, definitions: new Map(), clock: systemClock, random: () => 0 }
  const events: MillEvents['lease.reaped'][] = []
  mill.events.on('lease.reaped', (event) => events.push(event))
  while (events.length === 0) {
    await reapOnce({ ...parts, redactor: redact, events: mill.events, worker: 'reaper' })
  }
  assert.equal(events[0]?.outcome.kind, 'retry')
})
