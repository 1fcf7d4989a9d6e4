import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SaidLines } from '../engine/job-logs.ts'
import type { RunningJob } from '../job/definition.ts'
import { readLog } from '../job/job-log.ts'
import { TestClock } from '../testing/test-clock.ts'
import { LogBuffer } from './log-buffer.ts'

const running = (id: string): RunningJob => ({
  ...{ id, type: 'greet', name: 'greet', attempt: 1, attempts: 3, priority: 5, key: null, latestKey: null },
  ...{ tenant: null, createdAtMs: 0, token: 't' },
})

const [a, b] = [running('a'), running('b')]

/** A buffer over a store that can refuse, with the calls that it got. */
function stage(lines = 200) {
  const clock = new TestClock()
  const calls: (readonly SaidLines[])[] = []
  const errors: string[] = []
  const store = { refuses: false }
  const buffer = new LogBuffer({
    clock,
    logs: {
      append: async (said) => {
        if (store.refuses) throw new Error('away')
        calls.push(structuredClone(said))
      },
      read: async () => [],
    },
    worker: 'w',
    redactor: (text) => text,
    keep: { level: 'info', lines },
    onError: (error) => errors.push(String(error)),
  })
  const texts = (part: SaidLines | undefined): readonly string[] =>
    readLog((part?.lines ?? []).map((line, seq) => ({ seq, line }))).lines.map(({ message }) => message)
  return { clock, calls, errors, store, buffer, texts }
}

test('lines of all jobs are written in one call, soon after a silence and then at most once a second', async () => {
  const { clock, calls, buffer, texts } = stage()
  buffer.say(a, 'debug', 'not kept')
  buffer.say(a, 'info', 'one')
  buffer.say(b, 'warn', 'two')
  buffer.say(a, 'error', 'three')
  assert.equal(calls.length, 0, 'no handler waits')
  await clock.advance(60)
  assert.deepEqual(
    calls.map((said) => said.map((part) => [part.job.id, texts(part)])),
    [
      [
        ['a', ['one', 'three']],
        ['b', ['two']],
      ],
    ],
  )
  buffer.say(a, 'info', 'four')
  await clock.advance(500)
  assert.equal(calls.length, 1)
  buffer.say(a, 'info', 'five')
  await clock.advance(600)
  assert.deepEqual(texts(calls[1]?.[0]), ['four', 'five'])
  await clock.advance(60_000)
  assert.equal(calls.length, 2, 'nothing is written while nothing is said')
})

test('what is too much is counted, the oldest first', async () => {
  const { calls, buffer, texts } = stage(3)
  for (let n = 1; n <= 10; n += 1) buffer.say(a, 'info', `${n}`)
  await buffer.close()
  assert.equal(calls[0]?.[0]?.skipped, 7)
  assert.deepEqual(texts(calls[0]?.[0]), ['8', '9', '10'])
})

test('a store that refuses is asked again, with longer pauses, and gets the lines in their order', async () => {
  const { clock, calls, errors, store, buffer, texts } = stage(4)
  store.refuses = true
  for (const text of ['1', '2', '3']) buffer.say(a, 'info', text)
  await clock.advance(60)
  assert.equal(errors.length, 1)
  for (const text of ['4', '5']) buffer.say(a, 'info', text)
  await clock.advance(2_100)
  assert.equal(errors.length, 2)
  store.refuses = false
  await clock.advance(4_100)
  assert.deepEqual([calls.length, calls[0]?.[0]?.skipped, texts(calls[0]?.[0])], [1, 1, ['2', '3', '4', '5']])
})

test('a worker that stops writes what is left, and says what it could not write', async () => {
  const written = stage()
  written.buffer.say(a, 'info', 'last')
  await written.buffer.close()
  assert.equal(written.calls.length, 1)
  const refused = stage()
  refused.store.refuses = true
  refused.buffer.say(a, 'info', 'last')
  await refused.buffer.close()
  assert.match(refused.errors.at(-1) ?? '', /1 log lines of 1 jobs were not kept/)
})

test('many lines are written in several calls, and more than the store can take are dropped and reported', async () => {
  const { calls, errors, buffer } = stage()
  const text = 'x'.repeat(3_900)
  for (let n = 0; n < 3_000; n += 1) buffer.say(running(`job ${n}`), 'info', text)
  await buffer.close()
  assert.ok(calls.length >= 4 && calls.every((said) => said.length <= 500))
  assert.match(errors[0] ?? '', /log lines were not kept: handlers say more than the store can write/)
})
