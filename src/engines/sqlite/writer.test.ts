import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { Connection } from './database.ts'
import { RetryIndividually, Writer } from './writer.ts'

function staged(sync: (() => Promise<void>) | null = null) {
  const database = new DatabaseSync(':memory:')
  database.exec('CREATE TABLE t (x INTEGER CHECK (x < 10))')
  const connection = new Connection(database)
  const put = (x: number) => () => void connection.prepare('INSERT INTO t VALUES (?)').run(x)
  const stored = () =>
    database
      .prepare('SELECT x FROM t ORDER BY rowid')
      .all()
      .map((row) => row.x)
  return { writer: new Writer(connection, { sync }), database, put, stored }
}

test('a call that fails fails alone, and the others of its turn are stored in order', async () => {
  const { writer, put, stored } = staged()
  const answers = await Promise.allSettled([writer.run('a', put(1)), writer.run('b', put(99)), writer.run('c', put(3))])
  assert.deepEqual(
    answers.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  assert.deepEqual(stored(), [1, 3])
})

test('a shortcut that meets the rare case is undone and run again, alone', async () => {
  const { writer, put, stored } = staged()
  const seen: boolean[] = []
  const shortcut = (isAlone: boolean): string => {
    seen.push(isAlone)
    put(5)()
    if (!isAlone) throw new RetryIndividually('rare')
    return 'individually'
  }
  assert.deepEqual(await Promise.all([writer.run('a', put(1)), writer.run('b', shortcut)]), [undefined, 'individually'])
  assert.deepEqual(seen, [false, true])
  assert.deepEqual(stored(), [1, 5])
})

test('a durable call is acknowledged only after the sync, a volatile one before it', async () => {
  const disk = Promise.withResolvers<void>()
  const { writer, put, stored } = staged(() => disk.promise)
  const order: string[] = []
  const durable = writer.run('settle', put(1)).then(() => order.push('durable'))
  await writer.run('claim', put(2), 'volatile').then(() => order.push('volatile'))
  assert.deepEqual(stored(), [1, 2])
  assert.deepEqual(order, ['volatile'])
  disk.resolve()
  await durable
  assert.deepEqual(order, ['volatile', 'durable'])
})

test('a failed sync rejects what waited for it', async () => {
  const { writer, put } = staged(() => Promise.reject(new Error('EIO: i/o error')))
  await assert.rejects(writer.run('enqueue', put(1)), { code: 'ERR_STORAGE_FAILED' })
})

test('closing lets calls finish, syncs included, and refuses later ones', async () => {
  const disk = Promise.withResolvers<void>()
  const { writer, put, stored } = staged(() => disk.promise)
  const running = writer.run('enqueue', put(1))
  const closed = writer.close()
  await assert.rejects(writer.run('enqueue', put(2)), { code: 'ERR_CLOSED' })
  disk.resolve()
  await Promise.all([running, closed])
  assert.deepEqual(stored(), [1])
})

test('claims get smaller when transactions take long and grow again when they do not', async () => {
  const { writer } = staged()
  const spin = (ms: number) => () => {
    for (const untilMs = performance.now() + ms; performance.now() < untilMs; );
  }
  const full = writer.claimMax
  await writer.run('long', spin(12))
  assert.ok(writer.claimMax < full)
  const small = writer.claimMax
  // More than one: what is short lasts when the machine stands still within it.
  for (let runs = 0; runs < 1_000 && writer.claimMax <= small; runs += 1) await writer.run('short', () => {})
  assert.ok(writer.claimMax > small)
})

const unused = (): never => assert.fail('the statement is enough')

test('a call that is alone runs its single statement, and one among others joins their transaction', async () => {
  const { writer, database, put, stored } = staged()
  const single = (x: number) => () => {
    assert.equal(database.isTransaction, false)
    put(x)()
    return x
  }
  assert.equal(await writer.run('a', unused, 'durable', single(1)), 1)
  const together = [2, 3].map((x) => writer.run('b', () => put(x)() ?? x, 'durable', unused))
  assert.deepEqual(await Promise.all(together), [2, 3])
  assert.deepEqual(stored(), [1, 2, 3])
})

test('a call whose single statement is not enough, or fails, runs in a transaction', async () => {
  const { writer, database, put, stored } = staged()
  const run = (): string => {
    assert.equal(database.isTransaction, true)
    put(1)()
    return 'run'
  }
  assert.equal(await writer.run<string>('a', run, 'durable', () => null), 'run')
  assert.equal(await writer.run<string>('b', run, 'durable', () => put(99)() ?? ''), 'run')
  assert.deepEqual(stored(), [1, 1])
})

test('a single statement waits for a transaction that the user has open on the handle, and never joins it', async () => {
  const { writer, database, put, stored } = staged()
  database.exec('BEGIN')
  const running = writer.run('a', put(1), 'durable', unused)
  for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve))
  database.exec('ROLLBACK')
  await running
  assert.deepEqual(stored(), [1])
})

test('calls that follow each other do not wait for the event loop, which turns all the same', async () => {
  const { writer } = staged()
  const call = (): Promise<number> => writer.run('a', unused, 'durable', () => 1)
  let turns = 0
  let isTurning = true
  const turn = (): void => {
    turns += 1
    if (isTurning) setImmediate(turn)
  }
  setImmediate(turn)
  let calls = 0
  for (const untilMs = performance.now() + 100; performance.now() < untilMs; calls += 1) await call()
  isTurning = false
  assert.ok(turns >= 3, `${turns} turns`)
  assert.ok(calls > 2 * turns, `${calls} calls in ${turns} turns`)
})

/** Whether the event loop turns before a call is acknowledged whose transaction takes so long, by a clock that stands still otherwise. */
async function turnsBeforeAnswer(t: TestContext, tookMs: number): Promise<boolean> {
  const { writer } = staged()
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  let hasTurned = false
  const transaction = (): void => {
    nowMs += tookMs
    // Runs in the next turn, before what asks for it later.
    setImmediate(() => {
      hasTurned = true
    })
  }
  const answered = await writer.run('claim', transaction, 'volatile').then(() => hasTurned)
  await writer.close()
  t.mock.restoreAll()
  return answered
}

test('after a transaction of more than 2 ms the event loop turns before handlers start, and after a short one it does not', async (t) => {
  assert.equal(await turnsBeforeAnswer(t, 3), true)
  assert.equal(await turnsBeforeAnswer(t, 1), false)
})
