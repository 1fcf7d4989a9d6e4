import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaseOf } from '../../test/fixtures/lease.ts'
import { open } from '../client/mill.ts'
import type { Lost, LostReason } from '../engine/outcome.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'
import { startLeaseRenewer } from './lease-renewer.ts'
import { type Renewable, Renewals } from './renewals.ts'
import type { SharedLease } from './shared-leases.ts'

const held = (handle: number, leaseMs: number, timeoutMs = 300_000, heldAtMs = 0): SharedLease => ({
  handle,
  lease: leaseOf(`j${handle}`),
  leaseMs,
  heldAtMs,
  timeoutMs,
  renewedAtMs: heldAtMs,
  slot: null,
})

function staged(answer: (ids: readonly string[]) => readonly LostReason[] | Error = () => []) {
  const clock = new TestClock()
  const calls: { atMs: number; ids: readonly string[]; leaseMs: number }[] = []
  const lost: [number, LostReason][] = []
  const errors: unknown[] = []
  const all = new Map<number, Renewable>()
  const renewals = new Renewals({
    clock,
    held: () => all.values(),
    consumer: {
      async renew(leases, leaseMs): Promise<readonly Lost[]> {
        const ids = leases.map(({ job }) => job.id)
        calls.push({ atMs: clock.monotonicMs(), ids, leaseMs })
        const answered = answer(ids)
        if (answered instanceof Error) throw answered
        return answered.map((reason, index) => ({ lease: { ...leaseOf(ids[index] ?? '') }, reason }))
      },
    },
    onLost: (handle, reason) => {
      lost.push([handle, reason])
      all.delete(handle)
    },
    onError: (error) => errors.push(error),
  })
  const hold = (...renewables: readonly Renewable[]): void => {
    for (const renewable of renewables) {
      all.set(renewable.handle, renewable)
      renewals.watch(renewable.leaseMs)
    }
  }
  return { clock, calls, lost, errors, renewals, hold, drop: (handle: number) => all.delete(handle) }
}

test('all leases of one length are renewed in one call, every third of it', async () => {
  const { clock, calls, renewals, hold } = staged()
  hold(held(1, 60_000), held(2, 60_000), held(3, 9_000))
  await clock.advance('20s')
  assert.deepEqual(calls, [
    ...[3_000, 6_000, 9_000, 12_000, 15_000, 18_000].map((atMs) => ({ atMs, ids: ['j3'], leaseMs: 9_000 })),
    { atMs: 20_000, ids: ['j1', 'j2'], leaseMs: 60_000 },
  ])
  renewals.close()
  assert.equal(clock.waiting, 0)
})

test('a young lease waits for the next round and is never older than half its length unrenewed', async () => {
  const { clock, calls, renewals, hold } = staged()
  hold(held(1, 6_000))
  await clock.advance(1_001)
  hold(held(2, 6_000, 300_000, clock.monotonicMs()))
  await clock.advance(999)
  assert.deepEqual(calls.at(-1), { atMs: 2_000, ids: ['j1'], leaseMs: 6_000 })
  await clock.advance('2s')
  assert.deepEqual(calls.at(-1), { atMs: 4_000, ids: ['j1', 'j2'], leaseMs: 6_000 })
  renewals.close()
})

test('a dropped lease is not renewed, and one that comes after nothing was held is', async () => {
  const { clock, calls, renewals, hold, drop } = staged()
  hold(held(1, 3_000), held(2, 3_000))
  drop(1)
  await clock.advance('1s')
  assert.deepEqual(
    calls.map(({ ids }) => ids),
    [['j2']],
  )
  drop(2)
  await clock.advance('1s')
  assert.equal(calls.length, 1)
  hold(held(3, 3_000, 300_000, clock.monotonicMs()))
  await clock.advance('1s')
  assert.deepEqual(calls.at(-1)?.ids, ['j3'])
  renewals.close()
  assert.equal(clock.waiting, 0)
})

// I6: a handler stuck for ever must not keep its lease for ever.
test('renewal ends at the timeout of the job', async () => {
  const { clock, calls, hold } = staged()
  hold(held(1, 3_000, 2_500))
  await clock.advance('1m')
  assert.deepEqual(
    calls.map(({ atMs }) => atMs),
    [1_000, 2_000],
  )
})

test('a loss is told once, and the lease is not asked for again', async () => {
  const { clock, calls, lost, renewals, hold } = staged((ids) => (ids.includes('j1') ? ['cancelled'] : []))
  hold(held(1, 3_000), held(2, 3_000))
  await clock.advance('3s')
  assert.deepEqual(lost, [[1, 'cancelled']])
  assert.deepEqual(
    calls.map(({ ids }) => ids),
    [['j1', 'j2'], ['j2'], ['j2']],
  )
  renewals.close()
})

test('after a fault the renewal is tried again long before the lease is over', async () => {
  let faults = 2
  const { clock, calls, errors, renewals, hold } = staged(() => {
    faults -= 1
    return faults >= 0 ? new Error('busy') : []
  })
  hold(held(1, 30_000))
  await clock.advance('15s')
  assert.deepEqual(
    calls.map(({ atMs }) => atMs),
    [10_000, 11_000, 12_000],
  )
  assert.equal(errors.length, 2)
  renewals.close()
})

test('a lease that the engine watches itself is left alone', async () => {
  const clock = new TestClock()
  let calls = 0
  const keptLeases: SharedLease[] = []
  const renewer = startLeaseRenewer({
    clock,
    consumer: {
      async renew() {
        calls += 1
        return []
      },
    },
    worker: 'w',
    threadUrl: null,
    held: () => keptLeases,
    onLost: () => {},
    onError: () => {},
  })
  const keep = (renewable: SharedLease): void => {
    keptLeases.push(renewable)
    renewer.hold([renewable])
  }
  keep({ ...held(1, 3_000), lease: leaseOf('j1', null) })
  await clock.advance('1m')
  assert.equal(calls, 0)
  keep(held(2, 3_000, 300_000, clock.monotonicMs()))
  await clock.advance('1s')
  assert.equal(calls, 1)
  await renewer.close()
  assert.equal(clock.waiting, 0)
})

// B97 B98 X118: a job may take longer than its lease, up to its timeout.
test('a worker keeps the lease of a handler that runs longer than it', async () => {
  const clock = new TestClock()
  const mill = await open('memory:', { clock, random: () => 0 })
  const job = defineJob({ type: 'long', lease: '5s', run: () => clock.sleep(60_000) })
  const { id } = await mill.enqueue(job, null)
  const reaped: unknown[] = []
  mill.events.on('lease.reaped', (event) => reaped.push(event))
  await mill.work([job], { reap: '1s' })
  await clock.advance('59s')
  assert.equal((await mill.job(id))?.state, 'in_progress')
  await clock.advance('1s')
  const view = await mill.job(id)
  assert.equal(view?.state, 'completed')
  assert.equal(view?.attempt, 1)
  assert.deepEqual(reaped, [])
  await mill.close()
})

// I3
test('while the store does not answer, a lease is lost when its time is surely over, and not before', async () => {
  const { clock, lost, errors, renewals, hold } = staged(() => new Error('store down'))
  hold(held(1, 6_000))
  await clock.advance(5_900)
  assert.deepEqual(lost, [])
  assert.ok(errors.length > 1)
  await clock.advance(1_000)
  assert.deepEqual(lost, [[1, 'expired']])
  renewals.close()
})

test('a renewal that was answered starts the time anew', async () => {
  let isDown = false
  const { clock, lost, renewals, hold } = staged(() => (isDown ? new Error('store down') : []))
  hold(held(1, 6_000))
  await clock.advance(4_100)
  isDown = true
  await clock.advance(5_000)
  assert.deepEqual(lost, [])
  await clock.advance(2_000)
  assert.deepEqual(lost, [[1, 'expired']])
  renewals.close()
})
