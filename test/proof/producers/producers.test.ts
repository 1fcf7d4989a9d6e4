/** Jobs of other programs are run, and those whose payload the schema refuses are dead letters at once. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Entry } from '../../../proof/history/entry.ts'
import { type ForeignOperation, generateForeign } from '../../../proof/workload/foreign.ts'
import { openEngine } from '../../../src/engine/open.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { tempFiles } from '../../fixtures/temp-files.ts'
import { freshName, kafkaServer } from '../../servers/kafka.ts'
import { dropSchema, postgresServer, schemaUrl } from '../../servers/postgres.ts'
import { dropPrefix, prefixUrl, redisServer } from '../../servers/redis.ts'
import { playHere } from '../play-here.ts'
import { producersFor } from './index.ts'

const files = tempFiles()

/** Twice, so that two processes write; one of the jobs fails for good, and one has a bad payload. */
function operations(): readonly ForeignOperation[] {
  const made = generateForeign({ seed: 3, jobs: 30, spanMs: 200 })
  const jobs = made.flatMap((operation) => operation.jobs)
  assert.ok(jobs.some(({ isBad }) => isBad === true))
  assert.ok(jobs.some(({ behaviours: [first] }) => first?.do === 'throw'))
  return made
}

/** The jobs that ended as dead letters, by what their payload asked for. */
async function play(url: string): Promise<{ readonly begun: number; readonly dead: number; readonly stored: number }> {
  const settings = { clock: systemClock, migrate: true }
  const played = await playHere({
    openEngine: () => openEngine(url, settings),
    clock: systemClock,
    program: () => ({ seed: 0, clients: [] }),
    producers: producersFor(url),
    foreign: operations(),
    boundMs: 60_000,
  })
  assert.deepEqual(played.verdict.violations, [])
  assert.ok(played.isFinished)
  const count = (of: (entry: Entry) => boolean): number => played.history.filter(of).length
  return {
    begun: new Set(played.history.flatMap((entry) => (entry.what === 'begin' ? [entry.id] : []))).size,
    dead: played.verdict.tally.dead,
    stored: count((entry) => entry.what === 'foreign' && entry.isStored === true),
  }
}

describe('jobs of other programs', { timeout: 300_000 }, () => {
  const jobs = operations().flatMap((operation) => operation.jobs)
  const bad = jobs.filter(({ isBad }) => isBad === true).length
  const failing = jobs.filter(({ isBad, behaviours: [first] }) => isBad !== true && first?.do === 'throw').length
  const expected = { begun: jobs.length - bad, dead: bad + failing, stored: jobs.length }

  test('psql writes rows that are jobs', async (t) => {
    const { url, schema } = schemaUrl(await postgresServer())
    t.after(() => dropSchema(url, schema))
    assert.deepEqual(await play(url), expected)
  })

  test('sqlite3 writes rows that are jobs', async () => {
    assert.deepEqual(await play(`sqlite:${files.next()}`), expected)
  })

  test('plain BullMQ adds jobs that are jobs here', async (t) => {
    const server = await redisServer()
    const { url, prefix } = prefixUrl(server)
    t.after(() => dropPrefix(server.url, prefix))
    assert.deepEqual(await play(url), expected)
  })

  test('Kafka’s console producer writes records that are jobs', async () => {
    const { url } = await kafkaServer()
    const name = freshName()
    assert.deepEqual(await play(`${url}?group=${name}&prefix=${name}.&partitions=2`), expected)
  })
})
