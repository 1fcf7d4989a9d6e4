import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { Connection } from './database.ts'
import { LockPauses } from './lock-pauses.ts'
import { Writer } from './writer.ts'

/** As a factor of a pause: it would end after the test. */
const FOREVER = 1_000_000
/** Attempts before the first rest. */
const LOOKS = 4

const files = tempFiles()

test('after some attempts a writer rests, if nothing urgent waits', async () => {
  let chance = 0
  const pauses = new LockPauses(() => chance)
  pauses.begin()
  for (let looks = 0; looks < LOOKS; looks += 1) await pauses.next(true)
  // Another attempt would follow after 8 ms at most.
  await pauses.next(false)
  const fromMs = performance.now()
  await pauses.next(true)
  assert.ok(performance.now() - fromMs >= 35)
  for (let looks = 0; looks < LOOKS; looks += 1) await pauses.next(true)
  chance = FOREVER
  const resting = pauses.next(true)
  pauses.hurry()
  await resting
})

/** A claim that rests, because another has locked the file; `free` unlocks it. */
async function restingClaim(t: TestContext) {
  const file = files.next()
  const other = new DatabaseSync(file)
  other.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (x INTEGER); BEGIN IMMEDIATE')
  const connection = new Connection(new DatabaseSync(file, { timeout: 0 }))
  t.after(() => {
    connection.close()
    other.close()
  })
  const rests = Promise.withResolvers<void>()
  let pauses = 0
  const random = (): number => {
    pauses += 1
    if (pauses <= LOOKS) return 0
    rests.resolve()
    return FOREVER
  }
  const writer = new Writer(connection, { sync: null, random })
  const put = (x: number) => () => void connection.prepare('INSERT INTO t VALUES (?)').run(x)
  const claim = writer.run('claim', put(1), 'volatile', null, true)
  await rests.promise
  const read = () => other.prepare('SELECT x FROM t ORDER BY rowid').all()
  return { writer, claim, put, free: () => other.exec('COMMIT'), rows: () => read().map(({ x }) => x) }
}

test('an urgent call ends the rest of a claim, and shares its transaction', async (t) => {
  const { writer, claim, put, free, rows } = await restingClaim(t)
  free()
  await Promise.all([claim, writer.run('enqueue', put(2))])
  assert.deepEqual(rows(), [1, 2])
  await writer.close()
})

test('closing ends a rest, and what was called before is done', async (t) => {
  const { writer, claim, free, rows } = await restingClaim(t)
  free()
  await Promise.all([claim, writer.close()])
  assert.deepEqual(rows(), [1])
})

interface Locked {
  /** How many pauses it takes until the file is free. */
  readonly pauses: number
  /** Called in each pause, with its number from 1. */
  readonly during?: (pause: number, writer: Writer) => void
}

/** The pauses (ms) of a writer with a claim, while another has locked the file. Only they take time. */
async function pausesOf(t: TestContext, { pauses, during = () => {} }: Locked): Promise<readonly number[]> {
  const file = files.next()
  const other = new DatabaseSync(file)
  other.exec('PRAGMA journal_mode = WAL; BEGIN IMMEDIATE')
  const connection = new Connection(new DatabaseSync(file, { timeout: 0 }))
  t.after(() => {
    connection.close()
    other.close()
  })
  // The middle of the jitter: a pause is as long as its constant says.
  const writer = new Writer(connection, { sync: null, random: () => 0.5 })
  const askedMs: number[] = []
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  t.mock.method(globalThis, 'setTimeout', (run: () => void, ms: number) => {
    askedMs.push(ms)
    during(askedMs.length, writer)
    setImmediate(() => {
      nowMs += ms
      if (askedMs.length === pauses) other.exec('COMMIT')
      run()
    })
  })
  await claimOf(writer)
  await writer.close()
  return askedMs
}

const claimOf = (writer: Writer): Promise<void> => writer.run('claim', () => {}, 'volatile', null, true)

/** Before each rest; they sum up to 7.5 ms. */
const SHORT = [0.5, 1, 2, 4]
/** The first begins after 7.5 ms, the third is over after 262.5 ms, and a fourth would begin after 270 ms. */
const THREE_RESTS = [...SHORT, 80, ...SHORT, 80, ...SHORT, 80, ...SHORT]

test('a claim that has waited for 250 ms rests no more', async (t) => {
  const expected = [...THREE_RESTS, 8, 8, 8]
  assert.deepEqual(await pausesOf(t, { pauses: expected.length }), expected)
})

test('a claim that joins one that has waited for 250 ms does not make it rest again', async (t) => {
  const expected = [...THREE_RESTS, 8, 8, 8]
  const joined: Promise<void>[] = []
  const during = (pause: number, writer: Writer): void => {
    if (pause === 16) joined.push(claimOf(writer))
  }
  assert.deepEqual(await pausesOf(t, { pauses: expected.length, during }), expected)
  await Promise.all(joined)
  assert.equal(joined.length, 1)
})

test('a claim does not rest while an urgent call waits with it', async (t) => {
  const expected = [...SHORT, 8, 8, 8]
  const urgent: Promise<void>[] = []
  const during = (pause: number, writer: Writer): void => {
    if (pause === 1) urgent.push(writer.run('enqueue', () => {}))
  }
  assert.deepEqual(await pausesOf(t, { pauses: expected.length, during }), expected)
  await Promise.all(urgent)
  assert.equal(urgent.length, 1)
})
