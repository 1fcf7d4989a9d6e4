import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../client/mill.ts'
import type { MillEvents } from '../events.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'

const beat = defineJob({ type: 'beat' })

test('ticks that no keeper ran are counted, told and shown: all of skip, and all but the last of one', async (t) => {
  const clock = new TestClock()
  const mill = await open('memory:', { clock, random: () => 0.5, jobs: [beat] })
  t.after(() => mill.close())
  const fired: MillEvents['schedule.fired'][] = []
  mill.events.on('schedule.fired', (event) => void fired.push(event))
  const missed: MillEvents['schedule.missed'][] = []
  mill.events.on('schedule.missed', (event) => void missed.push(event))
  const startedMs = clock.nowMs()
  const spec = { type: beat, cron: '* * * * *', overlap: 'allow' } as const
  await mill.schedules.upsert('one', { ...spec, missed: 'one' })
  await mill.schedules.upsert('skip', { ...spec, missed: 'skip' })
  await mill.schedules.upsert('all', { ...spec, missed: 'all' })
  await mill.schedules.upsert('often', { ...spec, cron: '* * * * * *', missed: 'skip' })
  // Between two ticks, so that none is just due.
  await clock.advance('60m')
  await clock.advance('30s')
  await mill.keep()
  await clock.advance('1s')
  const firstMs = startedMs + 60_000 - (startedMs % 60_000)
  const told = missed.filter(({ name }) => name !== 'often').toSorted((a, b) => a.name.localeCompare(b.name))
  assert.deepEqual(
    told.map(({ name, count, isLeast, firstMs: from }) => [name, count, isLeast, from]),
    [
      ['one', 59, false, firstMs],
      ['skip', 60, false, firstMs],
    ],
  )
  const often = missed.find(({ name }) => name === 'often')
  assert.deepEqual([often?.count, often?.isLeast], [1_000, true])
  const shown = async (name: string) => (await mill.schedules.find(name))?.missedTicks
  assert.deepEqual([await shown('one'), await shown('skip'), await shown('all')], [59, 60, 0])
  assert.equal(fired.filter(({ name }) => name === 'all').length, 60)
})
