import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../client/mill.ts'
import { MemoryEngine, MemoryStore } from '../engines/memory/index.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'
import { PAST_TICKS_MAX, readTicks, withTicks } from './past-ticks.ts'

test('ten are kept, and ticks left out one after the other are one of them', () => {
  const run = (atMs: number) => ({ what: 'run', atMs, count: 1, jobId: `job-${atMs}` }) as const
  const skipped = (atMs: number) => ({ what: 'skipped', atMs, count: 1, jobId: null }) as const
  const many = withTicks([], [run(1), skipped(2), skipped(3), skipped(4), run(5)])
  assert.deepEqual(many, [run(1), { ...skipped(2), count: 3 }, run(5)])
  const full = withTicks(many, [6, 7, 8, 9, 10, 11, 12, 13].map(run))
  assert.deepEqual([full.length, full[0], full.at(-1)], [PAST_TICKS_MAX, { ...skipped(2), count: 3 }, run(13)])
})

test('what cannot be read is left out', () => {
  const known = { what: 'run', atMs: 1, count: 1, jobId: 'a' }
  assert.deepEqual(readTicks([known, null, 7, { ...known, what: 'dreamt' }, { ...known, atMs: '1' }]), [known])
  assert.deepEqual([readTicks(undefined), readTicks({})], [[], []])
})

test('a schedule remembers its runs, those by hand, and the ticks that were missed or skipped', async (t) => {
  const clock = new TestClock()
  const engine = () => new MemoryEngine({ clock, store })
  const store = new MemoryStore()
  const mill = await open(engine(), { clock })
  t.after(() => mill.close())
  const report = defineJob({ type: 'report' })
  await mill.schedules.upsert('hourly', { type: report, cron: '0 * * * *' })
  const startMs = clock.nowMs()
  const keeper = await mill.keep()
  await clock.advance('1h')
  await clock.advance('1h')
  await keeper.stop()
  await clock.advance('3h')
  const { id: byHand } = await mill.schedules.runNow('hourly')
  for (const { id } of await mill.jobs()) await mill.cancel(id)
  const again = await mill.keep()
  await clock.advance('1m')
  await again.stop()
  const past = (await mill.schedules.find('hourly'))?.past ?? []
  assert.deepEqual(
    past.map(({ what, count }) => [what, count]),
    [
      ['run', 1],
      ['skipped', 1],
      ['run-now', 1],
      ['missed', 2],
      ['run', 1],
    ],
  )
  const [first, , second, missed] = past
  assert.equal(second?.jobId, byHand)
  assert.ok((await mill.job(first?.jobId ?? ''))?.state === 'cancelled')
  assert.ok((missed?.atMs ?? 0) > startMs + 2 * 3_600_000 && missed?.jobId === null)
})
