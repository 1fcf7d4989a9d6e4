import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobEvent } from '../../api/shapes.ts'
import { lanesOf, spansOf, ticksOf } from './spans.ts'

const event = (name: string, atMs: number | null, attempt = 0, detail: JobEvent['detail'] = null): JobEvent => ({
  ...{ jobId: 'a', name, atMs, attempt, worker: null, detail },
})

const told = (history: readonly JobEvent[], endMs: number | null) =>
  spansOf(history, endMs).map(({ kind, fromMs, toMs, text }) => [kind, fromMs, toMs, text])

test('an attempt, its backoff and the next one are spans', () => {
  const history = [
    event('enqueued', 0),
    event('started', 10, 1),
    event('failed', 30, 1),
    event('retried', 30, 1, { delayMs: 50 }),
    event('started', 95, 2),
    event('completed', 100, 2),
  ]
  assert.deepEqual(told(history, null), [
    ['waiting', 0, 10, 'waiting'],
    ['running', 10, 30, 'failed'],
    ['backoff', 30, 80, 'waiting to be retried'],
    ['waiting', 80, 95, 'waiting'],
    ['running', 95, 100, 'completed'],
  ])
  assert.deepEqual(
    lanesOf(spansOf(history, null)).map(({ title, spans }) => [title, spans.length]),
    [
      ['Attempt 1', 2],
      ['Attempt 2', 3],
    ],
  )
})

test('a lost lease, a release, a replay and what has not ended are shown as such', () => {
  const history = [
    event('enqueued', 0),
    event('started', 10, 1),
    event('expired', 20, 1),
    event('retried', 20, 1, { delayMs: 0 }),
    event('started', 25, 2),
    event('released', 30, 2, { delayMs: 100 }),
    event('started', 40, 2),
    event('failed', 45, 2),
    event('dead', 45, 2),
    event('replayed', 90),
    event('unreadable', null),
  ]
  assert.deepEqual(told(history, 120), [
    ['waiting', 0, 10, 'waiting'],
    ['running', 10, 20, 'lease lost'],
    ['waiting', 20, 25, 'waiting'],
    ['running', 25, 30, 'released, no attempt counted'],
    ['backoff', 30, 40, 'given back for a while'],
    ['running', 40, 45, 'failed'],
    ['waiting', 90, 120, 'waiting'],
  ])
  assert.equal(lanesOf(spansOf(history, 120)).at(-1)?.title, 'Next attempt')
  assert.equal(lanesOf(spansOf([event('enqueued', 0)], 5)).at(-1)?.title, 'Not started')
  const isBackingOff = [...history.slice(0, 2), event('failed', 15, 1), event('retried', 15, 1, { delayMs: 1_000 })]
  assert.deepEqual(told(isBackingOff, 60).at(-1), ['backoff', 15, 60, 'waiting to be retried'])
})

test('the axis has a few whole steps, whatever its length', () => {
  assert.deepEqual(ticksOf(0), [0])
  assert.deepEqual(ticksOf(430), [0, 100, 200, 300, 400])
  assert.deepEqual(ticksOf(100_000), [0, 20_000, 40_000, 60_000, 80_000, 100_000])
  for (const lengthMs of [1, 999, 7e6, 8.6e9, 1e12]) assert.ok(ticksOf(lengthMs).length <= 6)
})
