import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../../testing/test-clock.ts'
import { BackgroundErrors } from './background-errors.ts'

test('a trouble is told once in a while, another one at once, and what nobody heard to the first who listens', async () => {
  const clock = new TestClock()
  const backgroundErrors = new BackgroundErrors(clock)
  const heard: string[] = []
  backgroundErrors.tell(new Error('before'))
  const stop = backgroundErrors.listen((error) => void heard.push(String(error)))
  await Promise.resolve()
  assert.deepEqual(heard.splice(0), ['Error: before'])
  for (const text of ['away', 'away', 'gone', 'away']) backgroundErrors.tell(new Error(text))
  assert.deepEqual(heard.splice(0), ['Error: away', 'Error: gone'])
  await clock.advance(9_999)
  backgroundErrors.tell(new Error('away'))
  assert.deepEqual(heard.splice(0), [])
  await clock.advance(1)
  backgroundErrors.tell(new Error('away'))
  assert.deepEqual(heard.splice(0), ['Error: away'])
  stop()
  backgroundErrors.tell('other')
  assert.deepEqual(heard, [])
})
