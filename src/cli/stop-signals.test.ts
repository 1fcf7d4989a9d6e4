import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../testing/test-clock.ts'
import { onStopSignals } from './stop-signals.ts'

function scene() {
  const clock = new TestClock()
  const heard: string[] = []
  const unsubscribe = onStopSignals(
    clock,
    (signal) => heard.push(`first ${signal}`),
    (signal) => heard.push(`second ${signal}`),
  )
  return { clock, heard, unsubscribe }
}

test('two signals within a second are one wish, a later one insists', async (t) => {
  const { clock, heard, unsubscribe } = scene()
  t.after(unsubscribe)
  process.emit('SIGINT', 'SIGINT')
  process.emit('SIGTERM', 'SIGTERM')
  assert.deepEqual(heard, ['first SIGINT'])
  await clock.advance(1_001)
  process.emit('SIGINT', 'SIGINT')
  assert.deepEqual(heard, ['first SIGINT', 'second SIGINT'])
})

test('after a stop the echo of its signal reaches nobody, and does not end the process either', async () => {
  const { clock, heard, unsubscribe } = scene()
  process.emit('SIGINT', 'SIGINT')
  unsubscribe()
  // Without a listener the system would end this process.
  assert.ok(process.listenerCount('SIGINT') > 0)
  await clock.advance(5_000)
  process.emit('SIGINT', 'SIGINT')
  assert.deepEqual(heard, ['first SIGINT'])
})

test('who stopped without a signal leaves none behind', () => {
  const before = process.listenerCount('SIGTERM')
  const { unsubscribe } = scene()
  unsubscribe()
  assert.equal(process.listenerCount('SIGTERM'), before)
})
