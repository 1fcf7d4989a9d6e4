/** After an audited erase, no part of the store has the erased text: searched as bytes where there are files, as rows and keys elsewhere. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, type TestContext, test } from 'node:test'
import { Redis } from 'ioredis'
import { open } from '../../src/client/mill.ts'
import { openDesk } from '../../src/desk/desk.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Outcome } from '../../src/engine/outcome.ts'
import { migrate } from '../../src/engines/postgres/module.ts'
import { defineJob } from '../../src/job/definition.ts'
import { seededRandom } from '../../src/testing/open-for-test.ts'
import { systemClock } from '../../src/time/clock.ts'
import { newJob } from '../fixtures/new-job.ts'
import { storeBytes } from '../fixtures/store-bytes.ts'
import { tempFiles } from '../fixtures/temp-files.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../servers/postgres.ts'
import { startRedis } from '../servers/redis.ts'

const by = { who: 'ann', reason: 'request 4711' }
const TYPE = 'letter'
const never = new AbortController().signal
const files = tempFiles()

interface Written {
  readonly id: string
  /** Texts that stand, or stood, in its payload, progress, result, error or key. */
  readonly texts: string[]
}

/** Jobs that end in every way, and are edited, replayed, discarded and purged. */
class Lives {
  readonly #engine: Engine
  readonly #random: () => number
  readonly written: Written[] = []

  constructor(t: TestContext, engine: Engine) {
    const seed = Math.floor(Math.random() * 2 ** 31)
    t.diagnostic(`seed ${seed}`)
    this.#engine = engine
    this.#random = seededRandom(seed)
  }

  #word(job: Written): string {
    const text = Array.from({ length: 4 }, () => this.#random().toString(36).slice(2, 10).padEnd(8, 'z')).join('')
    job.texts.push(text)
    return text
  }

  /** Half of all texts are larger than a page of SQLite's. */
  #text(job: Written): string {
    return `${this.#word(job)}${'. '.repeat(this.#random() < 0.5 ? 20 : Math.floor(this.#random() * 5_000))}`
  }

  async run(count: number): Promise<void> {
    const desk = openDesk({ engine: this.#engine })
    for (let n = 0; n < count; n += 1) {
      const job = newJob({ type: TYPE })
      const written: Written = { id: job.id, texts: [] }
      this.written.push(written)
      const payload = JSON.stringify({ password: this.#text(written) })
      const tenant = { orgId: this.#word(written) }
      const latest = n % 9 === 6 || n % 9 === 8 ? { key: `latest ${n}`, seq: 1 } : null
      const key = latest === null ? this.#word(written) : null
      await this.#engine.enqueue([{ ...job, payload, key, tenant, latest }])
      if (n % 9 === 2) {
        await this.#engine.controls?.cancel(job.id, by)
        continue
      }
      if (n % 9 === 8) {
        const newer = newJob({ type: TYPE, latest: { key: `latest ${n}`, seq: 2 } })
        await this.#engine.enqueue([newer])
        await this.#end({ id: newer.id, texts: [] }, { kind: 'complete', result: '1', durationMs: 1 })
        continue
      }
      for (const outcome of this.#interruptions(written, n)) await this.#end(written, outcome)
      if (n % 3 === 0) {
        await this.#end(written, { kind: 'complete', result: JSON.stringify(this.#text(written)), durationMs: 1 })
        continue
      }
      await this.#die(written)
      await desk.replay(job.id, by, { payload: { password: this.#text(written) } })
      await this.#die(written)
      if (n % 4 === 0) await desk.discard({ ids: [job.id] }, by)
      if (n % 4 === 1) await desk.purge({ ids: [job.id] }, by)
    }
  }

  /** Errors and reasons that only the history keeps. */
  #interruptions(written: Written, n: number): readonly Outcome[] {
    if (n % 2 === 0) return []
    const error = { name: 'Error', code: null, message: this.#text(written), stack: this.#text(written) }
    return [
      { kind: 'retry', delayMs: 0, error },
      { kind: 'release', delayMs: 0, reason: this.#text(written) },
    ]
  }

  #die(written: Written): Promise<void> {
    const [message, stack] = [this.#text(written), this.#text(written)]
    return this.#end(written, { kind: 'dead', error: { name: 'Error', code: null, message, stack } })
  }

  async #end(written: Written, outcome: Outcome): Promise<void> {
    const consumer = await this.#engine.consume({ types: [{ type: TYPE, leaseMs: 60_000 }], worker: 'w:1:1' })
    const [lease] = await consumer.claim({ max: 1, waitMs: 5_000, signal: never })
    assert.equal(lease?.job.id, written.id)
    await consumer.report(lease, JSON.stringify(this.#text(written)))
    assert.deepEqual(await consumer.settle([{ lease, outcome }]), [])
    await consumer.close()
  }
}

/** A worker that has not noticed that its job was cancelled, and then erased, reports and settles. */
async function settleErased(engine: Engine, written: Written): Promise<void> {
  const job = newJob({ id: written.id, type: 'late', payload: JSON.stringify(written.texts) })
  await engine.enqueue([job])
  const consumer = await engine.consume({ types: [{ type: 'late', leaseMs: 60_000 }], worker: 'w:1:1' })
  const [lease] = await consumer.claim({ max: 1, waitMs: 5_000, signal: never })
  assert.ok(lease)
  const [message = ''] = written.texts
  const error = { name: 'Error', code: null, message, stack: message }
  await engine.controls?.cancel(job.id, by)
  assert.equal((await openDesk({ engine }).erase({ ids: [job.id] }, by)).done, 1)
  await consumer.report(lease, JSON.stringify(message))
  await consumer.renew([lease], 60_000)
  assert.equal((await consumer.settle([{ lease, outcome: { kind: 'retry', delayMs: 0, error } }])).length, 1)
  assert.equal((await consumer.settle([{ lease, outcome: { kind: 'dead', error } }])).length, 1)
  await consumer.close()
}

/** Erases two of three jobs, and looks for the texts of both kinds. */
async function eraseAndSearch(engine: Engine, written: readonly Written[], search: () => Promise<Buffer>) {
  const found = (store: Buffer, some: readonly Written[]): readonly string[] =>
    some.flatMap(({ texts }) => texts.filter((text) => store.includes(text)))
  const erased = written.filter((_, index) => index % 3 !== 1)
  const before = found(await search(), erased).length
  assert.ok(before > erased.length, `the search finds what is there: ${before}`)
  const ids = erased.map(({ id }) => id)
  const outcome = await openDesk({ engine }).erase({ ids }, by)
  assert.deepEqual([outcome.done, outcome.refused], [erased.length, {}])
  const late: Written = { id: newJob().id, texts: ['the late words of quokka'] }
  await settleErased(engine, late)
  const after = await search()
  assert.deepEqual(found(after, [...erased, late]), [])
  const kept = written.filter(({ id }) => !ids.includes(id))
  assert.ok(found(after, kept).length > 0, 'other jobs keep theirs')
  const audit = await openDesk({ engine }).audit({ action: 'erase', limit: 1_000 })
  assert.deepEqual(audit.map(({ jobId }) => jobId).sort(), [...ids, late.id].sort())
}

describe('the bytes of an SQLite file and its log', { timeout: 120_000 }, () => {
  test('have nothing of erased jobs, also of what was replaced or purged before', async (t) => {
    const file = files.next()
    const mill = await open(`sqlite:${file}`)
    // Another one that looks for jobs of its own all the time.
    const other = await open(`sqlite:${file}`)
    t.after(async () => {
      await mill.close()
      await other.close()
    })
    await other.work([defineJob({ type: 'other', run: () => null })])
    const lives = new Lives(t, mill.engine)
    await lives.run(18)
    await eraseAndSearch(mill.engine, lives.written, async () => storeBytes(file))
  })

  test('may still have them while another connection reads, which the erase says', async (t) => {
    const file = files.next()
    const mill = await open(`sqlite:${file}`)
    t.after(() => mill.close())
    const lives = new Lives(t, mill.engine)
    await lives.run(9)
    const dead = (await openDesk(mill).list()).map(({ job }) => job.id)
    const texts = lives.written.filter(({ id }) => dead.includes(id)).flatMap((written) => written.texts)
    const found = () => texts.filter((text) => storeBytes(file).includes(text)).length
    const reader = new DatabaseSync(file, { readOnly: true })
    reader.exec('BEGIN; SELECT * FROM job_queue')
    let id = ''
    await assert.rejects(openDesk(mill).erase({ type: TYPE }, by), ({ message }: Error) => {
      id = /erase job (\w+) again/.exec(message)?.[1] ?? ''
      return dead.includes(id)
    })
    assert.deepEqual([await openDesk(mill).list(), found() > 0], [[], true])
    reader.close()
    // The filter matches nothing any more, so the error names a job whose erasing finishes it.
    assert.equal((await openDesk(mill).erase({ ids: [id] }, by)).done, 1)
    assert.equal(found(), 0)
  })
})

test('the tables of Postgres have nothing of erased jobs', { timeout: 120_000 }, async (t) => {
  const server = await postgresServer()
  const { url, schema } = schemaUrl(server)
  await migrate(url, { clock: systemClock, migrate: true })
  const mill = await open(url)
  t.after(async () => {
    await mill.close()
    await dropSchema(server.url, schema)
  })
  const lives = new Lives(t, mill.engine)
  await lives.run(18)
  await eraseAndSearch(mill.engine, lives.written, async () => {
    const tables = await query<{ name: string }>(
      server.url,
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname = $1`,
      [schema],
    )
    assert.ok(tables.length > 5)
    const rows = tables.map(({ name }) => query<{ row: string }>(server.url, `select t::text as row from ${name} as t`))
    return Buffer.from(
      (await Promise.all(rows))
        .flat()
        .map(({ row }) => row)
        .join('\n'),
    )
  })
})

test('the keys of Redis, as they would be saved, have nothing of erased jobs', { timeout: 120_000 }, async (t) => {
  const server = await startRedis({ settings: { rdbcompression: 'no' } })
  const mill = await open(server.url)
  const redis = new Redis(server.url)
  t.after(async () => {
    await mill.close()
    redis.disconnect()
    await server.end()
  })
  const lives = new Lives(t, mill.engine)
  await lives.run(18)
  await eraseAndSearch(mill.engine, lives.written, async () => {
    const keys = await redis.keys('*')
    const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
    return Buffer.concat([Buffer.from(keys.join('\n')), ...dumps.filter((dump) => dump !== null)])
  })
})
