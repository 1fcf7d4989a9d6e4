import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import { openEngine } from '../../engine/open.ts'
import type { NewJob } from '../../job/job.ts'
import { newJobId } from '../../job/job.ts'
import { TestClock } from '../../testing/test-clock.ts'
import { MemoryEngine } from './engine.ts'
import { MemoryStore } from './store.ts'

const never = new AbortController().signal
const complete = { kind: 'complete', result: '{"ok":true}', durationMs: 1 } as const

function job(clock: TestClock, fields: Partial<NewJob> = {}): NewJob {
  const plain = { payload: '{}', payloadVersion: 1, priority: 5, attempts: 3, delayMs: 0, runAtMs: null }
  const id = newJobId(clock.nowMs())
  return { id, type: 't', ...plain, key: null, latest: null, tenant: null, options: null, after: null, ...fields }
}

async function stage() {
  const clock = new TestClock()
  const engine = new MemoryEngine({ clock })
  const consumer = await engine.consume({ types: [{ type: 't', leaseMs: 1_000 }], worker: 'w' })
  return { clock, engine, consumer }
}

describe('waiting', () => {
  test('a claim that waits holds one timer, for the moment that matters, and leaves none', async () => {
    const { clock, engine, consumer } = await stage()
    await engine.enqueue([job(clock, { delayMs: 700 })])
    const claim = consumer.claim({ max: 1, waitMs: 60_000, signal: never })
    assert.equal(clock.waiting, 1)
    // An earlier job moves the moment; it does not add another timer.
    await engine.enqueue([job(clock, { delayMs: 300 })])
    assert.equal(clock.waiting, 1)
    await clock.advance(299)
    assert.equal(clock.waiting, 1)
    await clock.advance(1)
    assert.equal((await claim).length, 1)
    assert.equal(clock.waiting, 0)
    assert.deepEqual(getEventListeners(never, 'abort'), [])
  })

  test('claims that wait are served in the order they came, one job each', async () => {
    const { clock, engine, consumer } = await stage()
    const served: string[] = []
    const claims = ['first', 'second', 'third'].map((name) =>
      consumer.claim({ max: 1, waitMs: 1_000, signal: never }).then((leases) => {
        if (leases.length > 0) served.push(name)
      }),
    )
    await engine.enqueue([job(clock), job(clock)])
    await clock.advance('1s')
    await Promise.all(claims)
    assert.deepEqual(served, ['first', 'second'])
  })

  test('a reaper that waits is woken when a lease runs out, not before', async () => {
    const { clock, engine, consumer } = await stage()
    await engine.enqueue([job(clock)])
    const held = await consumer.claim({ max: 1, waitMs: 0, signal: never })
    const reaper = await engine.consume({ types: 'every', worker: 'reaper' })
    let reaped = 0
    const claim = reaper.claim({ max: 5, waitMs: 60_000, signal: never, from: 'expired' }).then((leases) => {
      reaped = leases.length
    })
    await clock.advance(600)
    assert.deepEqual(await consumer.renew(held, 1_000), [])
    await clock.advance(999)
    assert.equal(reaped, 0)
    await clock.advance(1)
    assert.equal(reaped, 1)
    await claim
  })

  test('a subscription to every type cannot claim ready jobs', async () => {
    const { engine } = await stage()
    const reaper = await engine.consume({ types: 'every', worker: 'reaper' })
    await assert.rejects(reaper.claim({ max: 1, waitMs: 0, signal: never }), { code: 'ERR_OPTION_INVALID' })
  })

  test('a job that is not kept after its end is still shown to those who wait for it', async () => {
    const clock = new TestClock()
    const engine = new MemoryEngine({ clock, store: new MemoryStore({ finishedMax: 0 }) })
    const consumer = await engine.consume({ types: [{ type: 't', leaseMs: 1_000 }], worker: 'w' })
    const [receipt] = await engine.enqueue([job(clock)])
    assert.ok(receipt)
    const waiting = engine.inspector.waitFor(receipt.id, { waitMs: 1_000, signal: never })
    const [lease] = await consumer.claim({ max: 1, waitMs: 0, signal: never })
    assert.ok(lease)
    await consumer.settle([{ lease, outcome: complete }])
    assert.deepEqual((await waiting)?.result, { ok: true })
    assert.deepEqual(await engine.inspector.find([receipt.id]), [null])
    assert.equal(clock.waiting, 0)
  })

  test('closing an engine ends its own waits and no other’s over the same store', async () => {
    const clock = new TestClock()
    const store = new MemoryStore()
    const engines = [new MemoryEngine({ clock, store }), new MemoryEngine({ clock, store })] as const
    const types = [{ type: 't', leaseMs: 1_000 }]
    const [mine, theirs] = await Promise.all(engines.map((engine) => engine.consume({ types, worker: 'w' })))
    assert.ok(mine && theirs)
    const ended = mine.claim({ max: 1, waitMs: 60_000, signal: never })
    const going = theirs.claim({ max: 1, waitMs: 60_000, signal: never })
    await engines[0].close()
    assert.deepEqual(await ended, [])
    await assert.rejects(engines[0].enqueue([job(clock)]), { code: 'ERR_CLOSED' })
    await engines[1].enqueue([job(clock)])
    assert.equal((await going).length, 1)
  })
})

describe('opening', () => {
  const settings = { clock: new TestClock(), migrate: true }

  test('each memory: URL is a memory of its own', async () => {
    const [one, other] = [await openEngine('memory:', settings), await openEngine('memory:', settings)]
    await one.enqueue([job(settings.clock)])
    assert.deepEqual([(await one.counts()).t?.ready, (await other.counts()).t], [1, undefined])
  })

  test('a memory: URL with anything more is refused', async () => {
    for (const url of ['memory:jobs', 'memory://host', 'memory:?size=1']) {
      await assert.rejects(openEngine(url, settings), { code: 'ERR_ENGINE_URL' })
    }
  })

  test('a transaction is refused and nothing is stored', async () => {
    const { clock, engine } = await stage()
    await assert.rejects(engine.enqueue([job(clock)], {}), { code: 'ERR_UNSUPPORTED' })
    assert.deepEqual(await engine.counts(), {})
  })
})
