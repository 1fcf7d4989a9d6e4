import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Outcome } from '../../engine/outcome.ts'
import type { NewJob } from '../../job/job.ts'
import { MemoryStore } from './store.ts'

const NOW = 1_000_000
const BY = { who: 'test', reason: 'test' }
const complete: Outcome = { kind: 'complete', result: 'null', durationMs: 1 }
const dead: Outcome = { kind: 'dead', error: { name: 'Error', code: null, message: 'boom', stack: null } }
const claimant = { worker: 'w', onLost: () => {} }

function job(id: string, fields: Partial<NewJob> = {}): NewJob {
  const plain = { payload: '{}', payloadVersion: 1, priority: 5, attempts: 3, delayMs: 0, runAtMs: null }
  return { id, type: 't', ...plain, key: null, latest: null, tenant: null, options: null, after: null, ...fields }
}

const version = (id: string, key: string, seq: number | null = null): NewJob => job(id, { latest: { key, seq } })

function claim(store: MemoryStore, max = 10, nowMs = NOW) {
  return store.claim({ types: [{ type: 't', leaseMs: 100 }], perType: {}, max }, claimant, nowMs)
}

/** Claims everything that is due and gives it this outcome. */
function settleAll(store: MemoryStore, outcome: Outcome, nowMs = NOW): void {
  for (const lease of claim(store, 1_000, nowMs)) assert.equal(store.settle(lease, outcome, nowMs), null)
}

describe('what is kept', () => {
  test('the last of the finished jobs are kept, in the order of their end', () => {
    const store = new MemoryStore({ finishedMax: 3 })
    for (const id of ['1', '2', '3', '4', '5']) {
      store.enqueue([job(id)], NOW)
      if (id === '4') store.cancel(id, BY, NOW)
      else settleAll(store, complete)
    }
    assert.deepEqual(
      store.list({ limit: 10 }).map((row) => row.job.id),
      ['5', '4', '3'],
    )
    assert.equal(store.find('2'), null)
    assert.equal(store.counts(NOW).t?.completed, 2)
  })

  // I9
  test('dead letters and live jobs are never dropped to make room', () => {
    const store = new MemoryStore({ finishedMax: 0 })
    for (const id of ['1', '2', '3']) {
      store.enqueue([job(id)], NOW)
      settleAll(store, dead)
    }
    store.enqueue([job('4')], NOW)
    settleAll(store, complete)
    store.enqueue([job('5')], NOW)
    assert.deepEqual(
      store.dead({ limit: 10 }).map((row) => row.job.id),
      ['3', '2', '1'],
    )
    assert.deepEqual(
      store.list({ limit: 10 }).map((row) => row.job.id),
      ['5', '3', '2', '1'],
    )
    assert.equal(store.live('t'), 1)
  })

  test('an invalid number of finished jobs is refused', () => {
    for (const finishedMax of [-1, Number.NaN]) {
      assert.throws(() => new MemoryStore({ finishedMax }), { code: 'ERR_OPTION_INVALID' })
    }
  })

  // C10 X133
  test('a latest key outlives its jobs, and is forgotten when as many others as finished jobs are idle', () => {
    const store = new MemoryStore({ finishedMax: 1 })
    assert.equal(store.latest('t', 'k'), null)
    store.enqueue([version('1', 'k', 7)], NOW)
    assert.equal(store.latest('t', 'k')?.seqMax, 7)
    settleAll(store, complete)
    store.enqueue([version('2', 'j', 1)], NOW)
    settleAll(store, complete)
    assert.equal(store.find('1'), null, 'the job has made room')
    assert.deepEqual(store.enqueue([version('3', 'k', 7)], NOW), [{ id: '3', status: 'stale' }])
    store.enqueue([job('4')], NOW)
    settleAll(store, complete)
    assert.equal(store.latest('t', 'k'), null, 'j is idle now too')
    assert.equal(store.latest('t', 'j')?.seqMax, 1)
    assert.deepEqual(store.enqueue([version('5', 'k', 1)], NOW), [{ id: '5', status: 'enqueued' }])
  })

  // I9
  test('a discarded dead letter has ended, and cannot be put back', () => {
    const store = new MemoryStore()
    store.enqueue([job('1', { key: 'k' })], NOW)
    assert.equal(store.discard('1', BY, NOW), false)
    settleAll(store, dead)
    assert.equal(store.discard('1', BY, NOW), true)
    assert.deepEqual([store.discard('1', BY, NOW), store.requeue('1', BY, NOW)], [false, false])
    const row = store.find('1')
    assert.deepEqual([row?.state, row?.ended, row?.history.at(-1)?.name], ['dead_letter', 'discarded', 'discarded'])
    assert.deepEqual([store.dead({ limit: 1 }), store.counts(NOW), store.live('t')], [[], {}, 0])
    assert.deepEqual(store.enqueue([job('2', { key: 'k' })], NOW), [{ id: '2', status: 'enqueued' }])
  })
})

describe('places in the queue', () => {
  // C15
  test('a newer version takes the place of the older one even within one millisecond', () => {
    const store = new MemoryStore()
    store.enqueue([version('a1', 'a'), version('b1', 'b'), version('a2', 'a')], NOW)
    assert.deepEqual(
      claim(store).map((lease) => lease.job.id),
      ['a2', 'b1'],
    )
  })

  // C16 C32
  test('a newer version of one that waits for its retry comes last of those due now', () => {
    const store = new MemoryStore()
    store.enqueue([version('a1', 'a')], NOW)
    const [lease] = claim(store)
    assert.ok(lease)
    store.settle(lease, { kind: 'retry', delayMs: 50, error: dead.error }, NOW)
    store.enqueue([version('b1', 'b'), version('a2', 'a')], NOW)
    assert.deepEqual(
      claim(store).map(({ job: { id } }) => id),
      ['b1', 'a2'],
    )
  })

  test('a hundred thousand jobs of mixed priority and due time are drained in seconds, in order', () => {
    const store = new MemoryStore()
    const jobs = Array.from({ length: 100_000 }, (_, index) =>
      job(`${index}`, { priority: 1 + (index % 10), runAtMs: NOW - (index % 977) }),
    )
    const startMs = performance.now()
    store.enqueue(jobs, NOW)
    const places: number[] = []
    for (let leases = claim(store, 50); leases.length > 0; leases = claim(store, 50)) {
      for (const lease of leases) {
        places.push(lease.job.priority * 1_000 - (NOW - lease.job.runAtMs))
        store.settle(lease, complete, NOW)
      }
    }
    const tookMs = performance.now() - startMs
    assert.equal(places.length, jobs.length)
    assert.ok(
      places.every((place, index) => index === 0 || place >= (places[index - 1] ?? 0)),
      'out of order',
    )
    // Twenty times what it takes; a quadratic step anywhere would take minutes.
    assert.ok(tookMs < 20_000, `took ${Math.round(tookMs)} ms`)
  })
})

describe('dead letters put back', () => {
  // I4
  test('an old version is not put back once a newer one was seen, whatever became of that', () => {
    const store = new MemoryStore()
    store.enqueue([version('old', 'k')], NOW)
    settleAll(store, dead)
    store.enqueue([version('new', 'k')], NOW)
    assert.equal(store.requeue('old', BY, NOW), false)
    settleAll(store, complete)
    assert.equal(store.requeue('old', BY, NOW), false)
    assert.deepEqual(claim(store), [])
  })

  // I7
  test('one whose key another live job has is not put back until that has finished', () => {
    const store = new MemoryStore()
    store.enqueue([job('1', { key: 'k' })], NOW)
    settleAll(store, dead)
    store.enqueue([job('2', { key: 'k' })], NOW)
    assert.equal(store.requeue('1', BY, NOW), false)
    settleAll(store, complete)
    assert.equal(store.requeue('1', BY, NOW), true)
    assert.deepEqual(store.enqueue([job('3', { key: 'k' })], NOW), [{ id: '1', status: 'duplicate' }])
  })
})

describe('history', () => {
  test('every step of a job is written down in order', () => {
    const store = new MemoryStore()
    const run = (outcome: Outcome, nowMs: number): void => {
      const [lease] = claim(store, 1, nowMs)
      assert.ok(lease)
      assert.equal(store.settle(lease, outcome, nowMs), null)
    }
    store.enqueue([job('1')], NOW)
    run({ kind: 'release', delayMs: 0, reason: 'shutdown' }, NOW + 1)
    run({ kind: 'retry', delayMs: 0, error: dead.error }, NOW + 2)
    claim(store, 1, NOW + 3)
    const demand = { types: 'every', perType: {}, max: 1 } as const
    const [reaped] = store.claimExpired(demand, { ...claimant, worker: 'reaper' }, NOW + 103)
    assert.ok(reaped)
    store.settle(reaped, dead, NOW + 104)
    store.requeue('1', BY, NOW + 105)
    run(complete, NOW + 106)
    const lines = store.find('1')?.history.map(({ name, attempt, worker, atMs }) => [name, attempt, worker, atMs - NOW])
    assert.deepEqual(lines, [
      ['enqueued', 0, null, 0],
      ['started', 1, 'w', 1],
      ['released', 0, 'w', 1],
      ['started', 1, 'w', 2],
      ['failed', 1, 'w', 2],
      ['retried', 1, null, 2],
      ['started', 2, 'w', 3],
      ['expired', 2, 'w', 103],
      ['failed', 2, 'reaper', 104],
      ['dead', 2, null, 104],
      ['replayed', 2, null, 105],
      ['started', 1, 'w', 106],
      ['completed', 1, 'w', 106],
    ])
  })
})

describe('rate limits', () => {
  const limited = (max: number, perMs: number) => ({
    types: [{ type: 't', leaseMs: 100, limit: { max, perMs } }],
    perType: {},
    max: 10,
  })
  const jobs = (count: number): readonly NewJob[] => Array.from({ length: count }, (_, index) => job(`${index}`))

  test('a claim counts for exactly its window, and the next possible moment is known', () => {
    const store = new MemoryStore()
    const demand = limited(2, 1_000)
    store.watchLimits(demand.types)
    store.enqueue(jobs(5), NOW)
    assert.equal(store.claim({ ...demand, max: 1 }, claimant, NOW).length, 1)
    assert.equal(store.claim(demand, claimant, NOW + 400).length, 1)
    assert.equal(store.nextClaimMs(demand, NOW + 400), NOW + 1_000)
    assert.equal(store.claim(demand, claimant, NOW + 999).length, 0)
    assert.equal(store.claim(demand, claimant, NOW + 1_000).length, 1)
    assert.equal(store.nextClaimMs(demand, NOW + 1_000), NOW + 1_400)
    assert.equal(store.claim(demand, claimant, NOW + 9_000).length, 2)
  })

  test('consumers with different limits each keep their own, over all claims', () => {
    const store = new MemoryStore()
    store.watchLimits(limited(3, 5_000).types)
    store.watchLimits(limited(2, 100).types)
    store.enqueue(jobs(8), NOW)
    assert.equal(store.claim(limited(2, 100), claimant, NOW).length, 2)
    assert.equal(store.claim(limited(2, 100), claimant, NOW + 200).length, 2)
    assert.equal(store.claim(limited(3, 5_000), claimant, NOW + 4_999).length, 0)
    assert.equal(store.nextClaimMs(limited(3, 5_000), NOW + 4_999), NOW + 5_000)
    assert.equal(store.claim(limited(3, 5_000), claimant, NOW + 5_000).length, 1)
  })

  test('after claims beyond the limit, by one who has none, room comes when enough of them are past', () => {
    const store = new MemoryStore()
    store.watchLimits(limited(1, 1_000).types)
    store.enqueue(jobs(4), NOW)
    for (const afterMs of [0, 300, 600]) assert.equal(claim(store, 1, NOW + afterMs).length, 1)
    assert.equal(store.nextClaimMs(limited(1, 1_000), NOW + 600), NOW + 1_600)
  })
})
