import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { packageVersion } from '../engine/package-info.ts'
import { LoopDelay, measuresTurns } from '../time/loop-delay.ts'
import { Vitals } from './vitals.ts'

test('a rate is of the time between two beats, and beats in quick succession keep the last', () => {
  const vitals = new Vitals()
  const at = (ms: number, completed: number, failed = 0) =>
    vitals.take(ms, new Map([['mail', { completed, failed }]])).ofType('mail')
  assert.deepEqual(at(0, 5), {})
  assert.deepEqual(at(10_000, 20, 5), { perSecond: 2 })
  assert.deepEqual(at(10_100, 30, 5), { perSecond: 2 })
  assert.deepEqual(at(20_000, 30, 6), { perSecond: 1.1 })
  assert.deepEqual(at(30_000, 30, 6), { perSecond: 0 })
  vitals.close()
})

test('it has the version of the package and the memory of the process', () => {
  const vitals = new Vitals()
  const { version, memoryBytes = 0, loopDelayMs } = vitals.take(0, new Map()).ofProcess
  assert.deepEqual([version, loopDelayMs], [packageVersion(), undefined])
  assert.ok(memoryBytes > 10_000_000)
  vitals.close()
})

test('the delay of the event loop is the longest since the last look', async () => {
  const delay = new LoopDelay()
  assert.equal(delay.take(), null)
  await sleep(600)
  const blockedUntilMs = performance.now() + 1_000
  while (performance.now() < blockedUntilMs);
  await sleep(600)
  const longest = delay.take() ?? 0
  // A Node that cannot measure each turn looks twice a second.
  assert.ok(longest >= (measuresTurns(process.versions.node) ? 990 : 400) && longest < 30_000, `${longest} ms`)
  delay.close()
})

test('a process that only waits has no delay of the event loop', async () => {
  const delay = new LoopDelay()
  delay.take()
  await sleep(1_200)
  delay.take()
  await sleep(1_200)
  const longest = delay.take() ?? 0
  assert.ok(longest < 600, `${longest} ms`)
  delay.close()
})

test('Node measures each turn of the event loop since 24.21 and 26.5', () => {
  const versions = ['24.15.0', '24.20.1', '24.21.0', '25.9.0', '26.0.0', '26.5.0', '27.0.0']
  assert.deepEqual(versions.map(measuresTurns), [false, false, true, false, false, true, true])
})
