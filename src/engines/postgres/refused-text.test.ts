import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { type PostgresServer, query, schemaUrl, startPostgres } from '../../../test/servers/postgres.ts'
import { type Mill, open } from '../../client/mill.ts'
import { messageOf } from '../../errors.ts'
import { defineJob } from '../../job/definition.ts'
import { redact } from '../../job/error-record.ts'
import { reapOnce } from '../../keeper/reaper.ts'
import { systemClock } from '../../time/clock.ts'
import { migrate } from './module.ts'

let server: PostgresServer

before(async () => {
  server = await startPostgres()
})

/** The owner of the table allows short codes and short results only: the server then refuses what it is given. */
async function opened(t: TestContext): Promise<{ mill: Mill; told: string[]; schema: string }> {
  const { url, schema } = schemaUrl(server)
  await migrate(url, { clock: systemClock, migrate: false })
  await query(server.url, `alter table ${schema}.jobs alter column fail_code type varchar(20)`)
  await query(server.url, `alter table ${schema}.jobs add check (length(result::text) < 20)`)
  const mill = await open(url)
  t.after(() => mill.close())
  const told: string[] = []
  mill.events.on('worker.error', ({ during, error }) => told.push(`${during}: ${messageOf(error)}`))
  mill.events.on('keeper.error', ({ during, error }) => told.push(`${during}: ${messageOf(error)}`))
  return { mill, told, schema }
}

const LONG_CODE = 'E_CODE_THAT_IS_TOO_LONG_FOR_THE_COLUMN'

test('an error or result that the server refuses is settled without it at once, whatever kind of job it is', async (t) => {
  const { mill, told } = await opened(t)
  let settled = 0
  let lost = 0
  mill.events.on('lease.lost', () => {
    lost += 1
  })
  const all = Promise.withResolvers<void>()
  mill.events.on('job.settled', () => {
    settled += 1
    if (settled === 12) all.resolve()
  })
  const spec = {
    lease: '10m',
    attempts: 1,
    run: ({ payload }: { readonly payload: unknown }) => {
      if (payload === 'throw') throw Object.assign(new Error('refused'), { code: LONG_CODE })
      return payload === 'return' ? 'a result that is too long for the check' : 'short'
    },
  } as const
  const plain = defineJob({ ...spec, type: 'plain' })
  const bounded = defineJob({ ...spec, type: 'bounded', removeOnComplete: 9, removeOnFail: 9 })
  const ids: Record<string, string> = {}
  for (const payload of ['throw', 'return', 'well']) {
    ids[`plain ${payload}`] = (await mill.enqueue(plain, payload)).id
    ids[`keyed ${payload}`] = (await mill.enqueue(plain, payload, { key: payload })).id
    ids[`latest ${payload}`] = (await mill.enqueue(plain, payload, { latest: payload })).id
    ids[`bounded ${payload}`] = (await mill.enqueue(bounded, payload)).id
  }
  // All at once: one statement, in which each is to get its own outcome.
  await mill.work([plain, bounded], { concurrency: 20, reap: false })
  await all.promise
  for (const [name, id] of Object.entries(ids)) {
    const view = await mill.job(id)
    const expected = name.endsWith('well') ? ['completed', undefined] : ['dead_letter', 'ERR_STORAGE_REFUSED']
    assert.deepEqual([view?.state, view?.error?.code], expected, name)
  }
  assert.equal(lost, 0)
  assert.equal(told.length, 8)
  for (const line of told) assert.match(line, /^settle: the store refused the text/)
})

test('the reaper recovers a job whose error the server refuses, and the others of its pass', async (t) => {
  const { mill, told, schema } = await opened(t)
  const job = defineJob({ type: 'reaped', lease: 100, attempts: 1 })
  const receipts = await mill.enqueueMany(job, [1, 2, 3])
  const consumer = await mill.engine.consume({ types: [{ type: 'reaped', leaseMs: 100 }], worker: 'dying' })
  const { signal } = new AbortController()
  assert.equal((await consumer.claim({ max: 3, waitMs: 0, signal })).length, 3)
  // The words that a reaper would record are too long for this one.
  await query(
    server.url,
    `alter table ${schema}.jobs add check (id::text <> '${receipts[1]?.id}' or fail_reason is null or fail_reason like 'the store refused%')`,
  )
  const parts = { engine: mill.engine, definitions: new Map(), clock: systemClock, random: () => 0 }
  let dead = 0
  while (dead < 3) dead += (await reapOnce({ ...parts, redactor: redact, events: mill.events, worker: 'reaper' })).dead
  const codes = await Promise.all(receipts.map(async ({ id }) => (await mill.job(id))?.error?.code))
  assert.deepEqual(codes, ['ERR_LEASE_EXPIRED', 'ERR_STORAGE_REFUSED', 'ERR_LEASE_EXPIRED'])
  assert.match(told.join('\n'), /^reap: the store refused the text of the outcome 'dead'.*start 1 expired/)
})
