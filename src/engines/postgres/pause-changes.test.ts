import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../time/clock.ts'
import { PauseChanges } from './pause-changes.ts'

test('pauses are read again when a look saw others, and after a second without a look', async (t) => {
  const changes = new PauseChanges()
  t.after(() => changes.close())
  let told = 0
  const stop = changes.onChange(() => {
    told += 1
  })
  changes.saw(null)
  assert.equal(told, 0, 'without pauses nothing has changed')
  changes.saw('one')
  changes.saw('one')
  assert.equal(told, 1)
  const startedAtMs = systemClock.monotonicMs()
  while (told < 2) await systemClock.sleep(10)
  assert.ok(systemClock.monotonicMs() - startedAtMs >= 900)
  // While looks come as often as a worker that waits makes them, nobody else has to look.
  for (let looks = 0; looks < 15; looks += 1) {
    changes.saw('one')
    await systemClock.sleep(100)
  }
  assert.equal(told, 2)
  stop()
  changes.saw(null)
  assert.equal(told, 2)
})
