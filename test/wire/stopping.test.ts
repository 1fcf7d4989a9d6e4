/** I8 with real servers that accept everything and answer nothing: a close takes the drain and 8 s at most. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, type TestContext, test } from 'node:test'
import { migrate } from '../../src/engines/postgres/module.ts'
import { defineJob, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { tcpProxy } from '../fixtures/tcp-proxy.ts'
import { tempFiles } from '../fixtures/temp-files.ts'
import { dropSchema, postgresServer, schemaUrl } from '../servers/postgres.ts'
import { freshPrefix, redisServer } from '../servers/redis.ts'

const DRAIN_MS = 1_000
/** What `mill.close` documents. */
const BOUND_MS = DRAIN_MS + 8_000
/** For a machine that is busy with other tests. Without a bound it took the time-out of a statement, 30 s, or longer. */
const SLACK_MS = 6_000

const files = tempFiles()

describe('closing while the store does not answer', { timeout: 300_000 }, () => {
  let [postgresUrl, schema] = ['', '']
  before(async () => {
    ;({ url: postgresUrl, schema } = schemaUrl(await postgresServer()))
    await migrate(postgresUrl, { clock: systemClock, migrate: false })
  })
  after(() => dropSchema(postgresUrl, schema))

  /** A store, and what makes it stop answering. */
  const STORES = {
    async postgres(t: TestContext) {
      const proxy = await tcpProxy(t, postgresUrl)
      return { url: proxy.url, freeze: () => proxy.freeze() }
    },
    async redis(t: TestContext) {
      const proxy = await tcpProxy(t, `${(await redisServer()).url}?prefix=${freshPrefix()}`)
      return { url: proxy.url, freeze: () => proxy.freeze() }
    },
    async sqlite(t: TestContext) {
      const file = files.next()
      const freeze = (): void => {
        const other = new DatabaseSync(file)
        t.after(() => other.close())
        other.exec('BEGIN IMMEDIATE')
      }
      return { url: `sqlite:${file}`, freeze }
    },
  }

  for (const engine of ['postgres', 'redis', 'sqlite'] as const) {
    for (const doing of ['idle', 'running a job'] as const) {
      test(`${engine}, ${doing}`, async (t) => {
        const { url, freeze } = await STORES[engine](t)
        const mill = await open(url)
        const running = Promise.withResolvers<void>()
        const job = defineJob({
          type: 'endless',
          run: () => {
            running.resolve()
            return new Promise<never>(() => {})
          },
        })
        await mill.work([job], { drain: DRAIN_MS })
        if (doing === 'running a job') {
          await mill.enqueue(job, null)
          await running.promise
        }
        freeze()
        const startedMs = systemClock.monotonicMs()
        await mill.close()
        const tookMs = systemClock.monotonicMs() - startedMs
        assert.ok(tookMs < BOUND_MS + SLACK_MS, `it took ${Math.round(tookMs)} ms`)
      })
    }
  }
})
