import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readLetter, toDeadLetter } from '../../../src/engines/kafka/dead-letters/letter.ts'
import { partsOf, readWhole, writeParts } from '../../../src/engines/kafka/dead-letters/parts.ts'
import type { StateView } from '../../../src/engines/kafka/dead-letters/states.ts'
import { TopicLetters } from '../../../src/engines/kafka/dead-letters/topic-letters.ts'
import type { NewRecord } from '../../../src/engines/kafka/record.ts'
import { DLQ_TOPIC_CONFIG } from '../../../src/engines/kafka/topics.ts'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { ArrayLog } from '../../../test/fixtures/array-log.ts'
import { archiveLetters, archivePlan, letterFate } from './archive.ts'
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
  const letters = new TopicLetters(log, { clock })
  const desk = new TopicDesk(letters, { clock })
  const archived: string[] = []
  const die = (key: string) => {
    const record = log.append({ topic, key: Buffer.from(key), value: Buffer.from('{}'), headers: new Map() })
    const [atMs, group] = [clock.nowMs(), 'g']
    const error = { name: 'Failed', code: null, message: 'no', stack: null }
    const worker = { group, workerType: group, workerInstance: 'g-1' }
    return log.append(toDeadLetter({ record, error, starts: 1, ...worker, firstFailureMs: atMs, lastFailureMs: atMs }))
  }
  const archive = (isFinancial: boolean) =>
    archiveLetters(letters, topic, { isFinancial, clock, write: async (lines) => void archived.push(...lines) })
  return { clock, log, letters, desk, archived, die, archive }
}

// D54 X168
test('letters older than 30 days are in the archive and no longer in the topic', async () => {
  const { clock, letters, archived, die, archive } = stage('deal.deadlines')
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
  const left = await letters.list('deal.deadlines', { state: 'every' })
  assert.deepEqual(
    left.map(({ letter }) => letter.envelope.original_key),
    ['young'],
  )
  assert.equal(await archive(false), 0)
})

// D55
test('a financial letter of a year ago that nobody resolved is still listed, and holds those after it', async () => {
  const { clock, desk, letters, log, archived, die, archive } = stage('escrow.commands')
  const [first, second, third] = [die('resolved'), die('open'), die('resolved too')]
  for (const { partition, offset } of [first, third]) {
    await desk.discard({ topic: 'escrow.commands', partition, offset: String(offset) }, by)
  }
  await clock.advance('365d')
  assert.equal(await archive(true), 1)
  assert.deepEqual(
    (await letters.list('escrow.commands')).map(({ letter }) => letter.at.offset),
    [second.offset],
  )
  assert.equal(log.recordsOf('escrow.commands.dlq').length, 2)
  assert.equal(archived.length, 1)
  assert.equal(await archive(true), 0)
})

test('however many letters are archived, few are in memory at once', async () => {
  const { clock, letters, log, die } = stage('deal.deadlines')
  for (let n = 0; n < 501; n += 1) die(`k${n}`)
  await clock.advance('31d')
  const calls: (readonly string[])[] = []
  const write = async (lines: readonly string[]): Promise<void> => void calls.push(lines)
  assert.equal(await archiveLetters(letters, 'deal.deadlines', { isFinancial: false, clock, write }), 501)
  const sizes = calls.map(({ length }) => length)
  assert.deepEqual(sizes, [500, 1])
  assert.equal(new Set(calls.flat()).size, 501)
  assert.equal(log.recordsOf('deal.deadlines.dlq').length, 0)
})

test('letters stay where they are when the archive fails', async () => {
  const { clock, log, letters, die } = stage('deal.deadlines')
  die('old')
  await clock.advance('31d')
  const failing = archiveLetters(letters, 'deal.deadlines', {
    isFinancial: false,
    clock,
    write: () => Promise.reject(new Error('the disk is full')),
  })
  await assert.rejects(failing, /full/)
  assert.equal(log.recordsOf('deal.deadlines.dlq').length, 1)
})

test('deleting archived letters never takes parts of a letter that is kept', async () => {
  const log = new ArrayLog(new TestClock(), 1)
  const large = plainLetter(25_000, 'large')
  const parts = partsOf(large, 10_000)
  assert.ok(parts !== null)
  // Another letter comes between two parts.
  await writeParts(large, parts, async (record) => {
    const place = log.append(record)
    if (place.offset === 1n) log.append(plainLetter(10, 'between'))
    return place
  })
  const place = { topic: 'jobs.dlq', partition: 0 }
  const read: typeof log.readRange = (topic, partition, range) => log.readRange(topic, partition, range)
  const records = await readWhole((at, range) => read(at.topic, at.partition, range), place, {
    ...{ from: 0n, to: 1_000n, max: 100 },
  })
  const [between, kept] = records.map(readLetter)
  assert.ok(between && kept)
  const plan = archivePlan([
    { letter: between, fate: 'archive' },
    { letter: kept, fate: 'keep' },
  ])
  assert.deepEqual([plan.archive, [...plan.cuts]], [[], []])
})

const plainLetter = (length: number, id: string): NewRecord => ({
  topic: 'jobs.dlq',
  key: Buffer.from(id),
  value: Buffer.alloc(length, id),
  headers: new Map([['kafka_dlt-original-topic', Buffer.from('jobs')]]),
})
