import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../time/clock.ts'
import { sourceOfClient } from './connections.ts'
import { Database, type Source } from './database.ts'
import type { PgClient } from './driver.ts'
import { namesIn } from './names.ts'

const fault = (code: string): Error => Object.assign(new Error(`a fault with ${code}`), { code })

const client: PgClient = {
  query: async () => ({ rows: [], rowCount: 0 }),
  on: () => {},
  removeListener: () => {},
  end: async () => {},
}

/** A source that is out of order with these, one after the other, and then works. */
function faulty(...codes: readonly string[]): { readonly database: Database; readonly tries: () => number } {
  let tries = 0
  const works = sourceOfClient(client)
  const source: Source = {
    acquire: async () => {
      const code = codes[tries]
      tries += 1
      if (code !== undefined) throw fault(code)
      return works.acquire()
    },
    close: async () => {},
  }
  const database = new Database({ source, names: namesIn('x'), clock: systemClock, prepare: false, answerMs: 60_000 })
  return { database, tries: () => tries }
}

test('opening is patient with a server that starts, and with nothing else', async () => {
  const starting = faulty('57P03', '57P03')
  await starting.database.reach()
  assert.equal(starting.tries(), 3)
  for (const code of ['ECONNREFUSED', '28P01', '3D000']) {
    const wrong = faulty(code)
    await assert.rejects(wrong.database.reach(), { code: 'ERR_STORAGE_OPEN' })
    assert.equal(wrong.tries(), 1, code)
  }
})

test('a call waits for an unreachable server, and not for one that refuses it', async () => {
  const away = faulty('ECONNREFUSED', '57P03', 'ECONNRESET')
  await away.database.rows(() => 'SELECT $1')
  assert.equal(away.tries(), 4)
  const refusing = faulty('28P01')
  await assert.rejects(
    refusing.database.rows(() => 'SELECT $1'),
    { code: '28P01' },
  )
})

test('after a slow statement a connection plans anew, and not all the time', async () => {
  const texts: string[] = []
  const slow: PgClient = {
    ...client,
    query: async ({ text }) => {
      texts.push(text)
      if (text === 'SLOW') await systemClock.sleep(120)
      return { rows: [], rowCount: 0 }
    },
  }
  const settings = { source: sourceOfClient(slow), names: namesIn('x'), clock: systemClock, answerMs: 60_000 }
  const database = new Database({ ...settings, prepare: true })
  for (const text of ['QUICK', 'SLOW', 'SLOW', 'QUICK']) await database.rows(() => text)
  // Usually after the first slow one; a machine that stands still makes a quick one slow.
  assert.deepEqual(
    texts.filter((text) => text !== 'DISCARD PLANS'),
    ['QUICK', 'SLOW', 'SLOW', 'QUICK'],
  )
  assert.equal(texts.splice(0).length, 5)
  const unprepared = new Database({ ...settings, prepare: false })
  for (const text of ['SLOW', 'QUICK']) await unprepared.rows(() => text)
  assert.deepEqual(texts, ['SLOW', 'QUICK'])
})

test('a following statement is sent before the answer to the first, on connections that allow it only', async () => {
  const texts: string[] = []
  const answer = Promise.withResolvers<void>()
  const query: PgClient['query'] = async ({ text }) => {
    texts.push(text)
    if (text === 'FIRST') await answer.promise
    if (text === 'NEXT') throw fault('57014')
    return { rows: [], rowCount: 0 }
  }
  const databaseOf = (own: Partial<PgClient>): Database => {
    const source = sourceOfClient({ ...client, ...own, query })
    return new Database({ source, names: namesIn('x'), clock: systemClock, prepare: false, answerMs: 60_000 })
  }
  const next = () => ({ statement: () => 'NEXT', values: [] })
  const first = databaseOf({ pipeline: true })
    .followedBy(next)
    .rows(() => 'FIRST')
  while (texts.length < 2) await systemClock.sleep(1)
  assert.deepEqual(texts.splice(0), ['FIRST', 'NEXT'])
  answer.resolve()
  assert.deepEqual(await first, [], 'what fails behind a statement fails it too')
  await databaseOf({})
    .followedBy(next)
    .rows(() => 'FIRST')
  assert.deepEqual(texts, ['FIRST'])
})

test('statements in line share a connection and do not wait for each other, where connections allow that', async () => {
  const sent = async (isPipelined: boolean): Promise<readonly number[]> => {
    let connections = 0
    const sentOn: number[] = []
    const answer = Promise.withResolvers<void>()
    const acquire: Source['acquire'] = async () => {
      connections += 1
      const nth = connections
      const query: PgClient['query'] = async () => {
        sentOn.push(nth)
        await answer.promise
        return { rows: [], rowCount: 0 }
      }
      return { ...client, pipeline: isPipelined, query, release: () => {} }
    }
    const source: Source = { isPipelined, acquire, close: async () => {} }
    const settings = { source, names: namesIn('x'), clock: systemClock, prepare: false, answerMs: 60_000 }
    const line = new Database(settings).inLine()
    const both = [line.rows(() => 'FIRST'), line.lists(() => 'SECOND')]
    while (sentOn.length < 2) await systemClock.sleep(1)
    answer.resolve()
    await Promise.all(both)
    return sentOn
  }
  assert.deepEqual(await sent(true), [1, 1])
  assert.deepEqual(await sent(false), [1, 2])
})
