import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brief, counted, duration, rate, readProgress, relative, shortId } from './format.ts'

test('a duration has two units at most and never rounds up into the next', () => {
  const cases: readonly (readonly [number, string])[] = [
    [-5, '0 ms'],
    [0, '0 ms'],
    [850.4, '850 ms'],
    [1_000, '1.0 s'],
    [9_999, '9.9 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [200_000, '3 min 20 s'],
    [3_600_000, '1 h'],
    [18_600_000, '5 h 10 min'],
    [183_600_000, '2 d 3 h'],
  ]
  for (const [ms, text] of cases) assert.equal(duration(ms), text)
})

test('a time is told from now, in both directions', () => {
  const now = 1_000_000_000
  assert.equal(relative(now - 400, now), 'now')
  assert.equal(relative(now - 61_000, now), '1 min ago')
  assert.equal(relative(now + 7_300_000, now), 'in 2 h')
  assert.equal(relative(now - 90_000_000, now), '1 d ago')
})

test('figures are short enough for their place', () => {
  assert.equal(brief(123_456), '123,456')
  assert.equal(brief(1_234_567), '1.2M')
  assert.equal(rate(0.25), '0.3/s')
  assert.equal(rate(12_345.6), '12,346/s')
  assert.equal(counted(1, 'job'), '1 job')
  assert.equal(counted(0, 'reply', 'replies'), '0 replies')
})

test('neighbours in time have different short ids', () => {
  assert.equal(shortId('mail:42'), 'mail:42')
  assert.notEqual(shortId('01K5X7Q0000000000000000AAA'), shortId('01K5X7Q0000000000000000AAB'))
  assert.equal(shortId('01K5X7Q0000000000000000AAA').length, 11)
})

test('progress in its usual forms becomes a part of the whole', () => {
  assert.equal(readProgress(null), null)
  assert.deepEqual(readProgress(40), { percent: 40, text: '40 %' })
  assert.deepEqual(readProgress({ percent: 140 }), { percent: 100, text: '140 %' })
  assert.deepEqual(readProgress({ done: 1, total: 4 }), { percent: 25, text: '1 of 4' })
  assert.deepEqual(readProgress({ percent: 10, text: 'reading' }), { percent: 10, text: 'reading' })
  assert.deepEqual(readProgress('<b>half</b>'), { percent: null, text: '<b>half</b>' })
  assert.deepEqual(readProgress({ done: 1, total: 0 }), { percent: null, text: '{"done":1,"total":0}' })
})
