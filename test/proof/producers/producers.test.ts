/** Jobs of other programs are run, and those whose payload the schema refuses are dead letters at once. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Entry } from '../../../proof/history/entry.ts'
import { type ForeignOperation, generateForeign } from '../../../proof/workload/foreign.ts'
import { openEngine } from '../../../src/engine/open.ts'
import { migrate } from '../../../src/engines/postgres/module.ts'
import { systemClock } from '../../../src/time/clock.ts'
import { tempFiles } from '../../fixtures/temp-files.ts'
import { freshName, kafkaServer } from '../../servers/kafka.ts'
import { dropSchema, postgresServer, schemaUrl } from '../../servers/postgres.ts'
import { dropPrefix, prefixUrl, redisServer } from '../../servers/redis.ts'
import { playHere } from '../play-here.ts'
import { producersFor } from './index.ts'

const files = tempFiles()
const settings = { clock: systemClock, migrate: true }

/** Two processes write; some of the jobs fail for good, and some have a bad payload. */
const foreign: readonly ForeignOperation[] = generateForeign({ seed: 9, jobs: 30, spanMs: 200 })

/** The jobs that ended as dead letters, by what their payload asked for. */
async function play(url: string): Promise<{ readonly begun: number; readonly dead: number; readonly stored: number }> {
  const played = await playHere({
    openEngine: () => openEngine(url, settings),
    clock: systemClock,
    program: () => ({ seed: 0, clients: [] }),
    producers: producersFor(url),
    foreign,
    boundMs: 60_000,
  })
  assert.deepEqual(played.verdict.violations, [])
  assert.ok(played.isFinished)
  const count = (of: (entry: Entry) => boolean): number => played.facts.history.filter(of).length
  return {
    begun: new Set(played.facts.history.flatMap((entry) => (entry.what === 'begin' ? [entry.id] : []))).size,
    dead: played.verdict.tally.dead,
    stored: count((entry) => entry.what === 'foreign' && entry.isStored === true),
  }
}

describe('jobs of other programs', { timeout: 300_000 }, () => {
  const assertRun = async (url: string): Promise<void> => {
    const jobs = foreign.flatMap((operation) => operation.jobs)
    const bad = jobs.filter(({ isBad }) => isBad === true).length
    const failing = jobs.filter(({ isBad, behaviours: [first] }) => isBad !== true && first?.do === 'throw').length
    const expected = { begun: jobs.length - bad, dead: bad + failing, stored: jobs.length }
    assert.ok(bad > 0 && failing > 0)
    assert.deepEqual(await play(url), expected)
  }

  test('psql writes rows that are jobs', async (t) => {
    const { url, schema } = schemaUrl(await postgresServer())
    t.after(() => dropSchema(url, schema))
    await migrate(url, settings)
    await assertRun(url)
  })

  test('sqlite3 writes rows that are jobs', async () => {
    await assertRun(`sqlite:${files.next()}`)
  })

  test('plain BullMQ adds jobs that are jobs here', async (t) => {
    const server = await redisServer()
    const { url, prefix } = prefixUrl(server)
    t.after(() => dropPrefix(server.url, prefix))
    await assertRun(url)
  })

  test('Kafka’s console producer writes records that are jobs', async () => {
    const { url } = await kafkaServer()
    const name = freshName()
    await assertRun(`${url}?group=${name}&prefix=${name}.&partitions=2`)
  })
})
