import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Beat } from '../../src/engine/presence.ts'
import { lagSeverity } from '../../src/observe/lag.ts'
import { conditionsOf, type WatchedWorker } from './conditions.ts'
import { consumerLag } from './watch.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
const ago = (seconds: number): number => NOW_MS - seconds * 1_000

const beat = (given: Partial<Beat> = {}): Beat => ({
  type: 'payout-executor',
  instance: 'payout-executor-1',
  status: 'RUNNING',
  atMs: NOW_MS,
  lastJobAtMs: NOW_MS,
  lag: 0,
  stoppingSinceMs: null,
  ...given,
})

const watched = (given: Partial<WatchedWorker> = {}): WatchedWorker => ({
  worker: 'payout-executor',
  instance: 'payout-executor-1',
  seenAtMs: NOW_MS,
  beat: beat(),
  knownSinceMs: ago(3_600),
  retrying: 0,
  ...given,
})

const found = (worker: WatchedWorker): readonly string[] =>
  conditionsOf(worker, NOW_MS, { warning: 100, critical: 500 }).map(
    ({ condition, severity }) => `${condition} ${severity}`,
  )

test('a worker that lives and works is of no concern', () => {
  assert.deepEqual(found(watched()), [])
})

// D10 X156
test('a heartbeat is missing after 60 s, also when its key is long gone', () => {
  const missing = (seconds: number) => found(watched({ seenAtMs: ago(seconds), beat: null }))
  assert.deepEqual(missing(31), [])
  assert.deepEqual(missing(59), [])
  assert.deepEqual(missing(60), [])
  assert.deepEqual(missing(61), ['heartbeat-missing critical'])
  const [condition] = conditionsOf(watched({ seenAtMs: ago(61) }), NOW_MS)
  assert.match(condition?.action ?? '', /operator.*restart/)
})

// D11 X158
test('no message for 5 min is a warning when records wait; otherwise the worker is idle', () => {
  const quiet = (seconds: number, lag: number | null) =>
    found(watched({ beat: beat({ lastJobAtMs: ago(seconds), lag }) }))
  assert.deepEqual(quiet(299, 1), [])
  assert.deepEqual(quiet(300, 1), [])
  assert.deepEqual(quiet(301, 1), ['no-message warning'])
  assert.deepEqual(quiet(301, null), ['no-message warning'])
  assert.deepEqual(quiet(301, 0), ['idle null'])
})

// D11
test('a worker that has never handled anything has been quiet since it was met', () => {
  const fresh = (seconds: number) =>
    found(watched({ knownSinceMs: ago(seconds), beat: beat({ lastJobAtMs: null, lag: 1 }) }))
  assert.deepEqual(fresh(299), [])
  assert.deepEqual(fresh(301), ['no-message warning'])
})

// X152
test('a worker that waits for a retry is shown as retrying, not as stuck', () => {
  assert.deepEqual(found(watched({ retrying: 1, beat: beat({ lastJobAtMs: ago(1_700), lag: 9 }) })), ['retrying null'])
})

// D12
test('lag above its limits is a condition of the worker too', () => {
  const behind = (lag: number) => found(watched({ beat: beat({ lag }) }))
  assert.deepEqual(behind(100), [])
  assert.deepEqual(behind(101), ['consumer-lag warning'])
  assert.deepEqual(behind(501), ['consumer-lag critical'])
  assert.deepEqual(conditionsOf(watched({ beat: beat({ lag: 501 }) }), NOW_MS), [])
})

// D13 X155
test('stopping for more than 2 min is a warning', () => {
  const stopping = (seconds: number) =>
    found(
      watched({
        beat: beat({ status: 'SHUTTING_DOWN', stoppingSinceMs: ago(seconds), lastJobAtMs: ago(900), lag: 5 }),
      }),
    )
  assert.deepEqual(stopping(119), [])
  assert.deepEqual(stopping(120), [])
  assert.deepEqual(stopping(121), ['shutdown-overdue warning'])
})

test('a limit is crossed above it, not at it', () => {
  const limits = { warning: 10, critical: 50 }
  assert.deepEqual(
    [0, 10, 11, 50, 51].map((lag) => lagSeverity(lag, limits)),
    [null, null, 'warning', 'warning', 'critical'],
  )
})

// X162 X163
test('lag is summed over partitions; without a commit it is everything that is there', () => {
  assert.equal(consumerLag([{ begin: 0n, end: 7n, committed: 2n }]), 5)
  assert.equal(
    consumerLag([
      { begin: 0n, end: 7n, committed: 2n },
      { begin: 3n, end: 10n, committed: null },
      { begin: 5n, end: 9n, committed: 1n },
      { begin: 0n, end: 4n, committed: 6n },
    ]),
    5 + 7 + 4 + 0,
  )
  assert.equal(consumerLag([]), 0)
})
