import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
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
  return { writer: new Writer(connection, { sync }), put, stored }
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
