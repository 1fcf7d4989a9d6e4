import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Moment } from './moment.ts'

test('a moment is read once, and anew in the next one', async () => {
  let readings = 0
  const moment = new Moment(() => {
    readings += 1
    return readings * 1_000
  })
  assert.equal(readings, 0, 'nobody has asked')
  assert.deepEqual([moment.ms, moment.ms, moment.ms], [1_000, 1_000, 1_000])
  await Promise.resolve()
  assert.equal(readings, 1)
  assert.deepEqual([moment.ms, moment.ms], [2_000, 2_000])
  const alreadyQueued: number[] = []
  await Promise.resolve()
  const first = Promise.resolve().then(() => alreadyQueued.push(moment.ms))
  const second = Promise.resolve().then(() => alreadyQueued.push(moment.ms))
  await Promise.all([first, second])
  assert.deepEqual(alreadyQueued, [3_000, 3_000])
})
