import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Leadership } from '../engine/leadership.ts'
import { createMemoryRecords, RecordTable } from '../engine/memory-records.ts'
import { TestClock } from '../testing/test-clock.ts'
import { LeaderElection } from './leader-election.ts'

test('a renewal that fails twice is tried again in time, and leadership stays', async () => {
  const clock = new TestClock()
  const table = new RecordTable()
  const records = createMemoryRecords({ clock, table: () => table, enqueue: () => [] })
  let renewals = 0
  const failing: typeof records = {
    ...records,
    save: async (...given) => {
      renewals += 1
      if (renewals % 3 !== 1) throw new Error('no answer')
      return records.save(...given)
    },
  }
  const stop = new AbortController()
  const heard: string[] = []
  const compete = (holder: string, leadership: Leadership): Promise<void> =>
    new LeaderElection({
      ...{ name: 'keeper', holder, intervalMs: 5_000, leadership, clock },
      onTaken: () => void heard.push(`${holder} leads`),
      onLost: () => void heard.push(`${holder} waits`),
      onError: () => {},
    }).keep(stop.signal)
  const leader = compete('ann', new Leadership(failing))
  await clock.advance(1)
  const other = compete('bob', new Leadership(records))
  await clock.advance('60s')
  assert.deepEqual(heard, ['ann leads'])
  // One for each interval and two that failed.
  assert.ok(renewals >= 24 && renewals <= 37, `${renewals} renewals`)
  stop.abort()
  await Promise.all([leader, other])
})
