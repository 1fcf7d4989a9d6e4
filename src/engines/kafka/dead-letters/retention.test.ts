import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ArrayLog } from '../../../../test/fixtures/array-log.ts'
import { TestClock } from '../../../testing/test-clock.ts'
import { toDeadLetter } from './letter.ts'
import { archiveLetters, DLQ_TOPIC_CONFIG, letterFate } from './retention.ts'
import { claimRecord, decodeState, encodeState, releaseRecord, resolvedRecord, type StateView } from './states.ts'
import { TopicDesk } from './topic-desk.ts'

const DAY_MS = 86_400_000
const by = { who: 'ann', reason: 'old' }
const pending: StateView = { state: 'pending', sinceMs: null, by: null, claim: null }

// D54
test('an ordinary letter is kept for 30 days and then archived', () => {
  const letter = { deadAtMs: 0, state: pending, isFinancial: false }
  assert.equal(letterFate(letter, 29 * DAY_MS), 'keep')
  assert.equal(letterFate(letter, 30 * DAY_MS), 'keep')
  assert.equal(letterFate(letter, 30 * DAY_MS + 1), 'archive')
})

// D55 X168
test('a financial letter is kept until it is resolved, and 30 days more', () => {
  const letter = { deadAtMs: 0, state: pending, isFinancial: true }
  const year = 365 * DAY_MS
  assert.equal(letterFate(letter, year), 'keep')
  assert.equal(letterFate({ ...letter, state: { ...pending, state: 'claimed', sinceMs: 1 } }, year), 'keep')
  for (const state of ['replayed', 'discarded'] as const) {
    const resolved = { ...letter, state: { state, sinceMs: year, by, claim: null } }
    assert.equal(letterFate(resolved, year + 30 * DAY_MS), 'keep')
    assert.equal(letterFate(resolved, year + 31 * DAY_MS), 'archive')
  }
  assert.equal(DLQ_TOPIC_CONFIG['retention.ms'], '-1')
})

function stage(topic: string) {
  const clock = new TestClock()
  const log = new ArrayLog(clock, 1)
  const desk = new TopicDesk(log, { clock })
  const archived: string[] = []
  const die = (key: string) => {
    const record = log.append({ topic, key: Buffer.from(key), value: Buffer.from('{}'), headers: new Map() })
    const [atMs, group] = [clock.nowMs(), 'g']
    const error = { name: 'Failed', code: null, message: 'no', stack: null }
    const worker = { group, workerType: group, workerInstance: 'g-1' }
    return log.append(toDeadLetter({ record, error, starts: 1, ...worker, firstFailureMs: atMs, lastFailureMs: atMs }))
  }
  const archive = (isFinancial: boolean) =>
    archiveLetters(log, topic, { isFinancial, clock, archive: async (lines) => void archived.push(...lines) })
  return { clock, log, desk, archived, die, archive }
}

// D54 X168
test('letters older than 30 days are in the archive and no longer in the topic', async () => {
  const { clock, desk, archived, die, archive } = stage('deal.deadlines')
  die('old')
  await clock.advance('2d')
  die('young')
  await clock.advance('29d')
  assert.equal(await archive(false), 1)
  assert.deepEqual(
    archived.map((line) => JSON.parse(line).original_key),
    ['old'],
  )
  assert.match(archived[0] ?? '', /"archived_at":"2026-02-01T00:00:00.000Z","id":"deal.deadlines\/0\/0\/g"/)
  const left = await desk.list('deal.deadlines', { state: 'every' })
  assert.deepEqual(
    left.map(({ letter }) => letter.envelope.original_key),
    ['young'],
  )
  assert.equal(await archive(false), 0)
})

// D55
test('a financial letter of a year ago that nobody resolved is still listed, and holds those after it', async () => {
  const { clock, desk, log, archived, die, archive } = stage('escrow.commands')
  const [first, second, third] = [die('resolved'), die('open'), die('resolved too')]
  for (const { partition, offset } of [first, third]) {
    await desk.discard({ topic: 'escrow.commands', partition, offset }, { by })
  }
  await clock.advance('365d')
  assert.equal(await archive(true), 1)
  assert.deepEqual(
    (await desk.list('escrow.commands')).map(({ letter }) => letter.at.offset),
    [second.offset],
  )
  assert.equal(log.recordsOf('escrow.commands.dlq').length, 2)
  assert.equal(archived.length, 1)
  assert.equal(await archive(true), 0)
})

test('letters stay where they are when the archive fails', async () => {
  const { clock, log, die } = stage('deal.deadlines')
  die('old')
  await clock.advance('31d')
  const failing = archiveLetters(log, 'deal.deadlines', {
    isFinancial: false,
    clock,
    archive: () => Promise.reject(new Error('the disk is full')),
  })
  await assert.rejects(failing, /full/)
  assert.equal(log.recordsOf('deal.deadlines.dlq').length, 1)
})

test('states are read back as they were written, and foreign records are passed over', () => {
  const at = { topic: 'a.dlq', partition: 0, offset: '9007199254740993' }
  const records = [
    claimRecord({ letter: 'a/0/1/a group', claim: 'c1', atMs: 5, by }),
    releaseRecord('a/0/1/a group', 'c1'),
    resolvedRecord({ letter: 'a/0/1/a group', state: 'replayed', at, atMs: 6, by }),
  ]
  for (const record of records) {
    const { key, value } = encodeState(record)
    assert.deepEqual(decodeState(key, value), record)
  }
  const foreign = [
    '',
    'x',
    '{}',
    '[]',
    'null',
    '{"kind":"resolved","letter":"a","atMs":1,"by":{"who":"a","reason":"b"}}',
  ]
  for (const value of foreign) assert.equal(decodeState(Buffer.from('state a'), Buffer.from(value)), null, value)
  assert.equal(decodeState(Buffer.from('other'), null), null)
  assert.equal(decodeState(null, null), null)
})
