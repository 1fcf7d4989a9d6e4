import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, test } from 'node:test'
import { newJob } from '../../../test/fixtures/new-job.ts'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import type { Engine } from '../../engine/engine.ts'
import { openEngine } from '../../engine/open.ts'
import type { Outcome } from '../../engine/outcome.ts'
import type { Predecessors } from '../../job/job.ts'
import { systemClock } from '../../time/clock.ts'
import { Connection } from './database.ts'
import * as dependencies from './dependencies.ts'
import { applyMigrations } from './migrate.ts'

const by = { who: 'test', reason: 'test' }
const done: Outcome = { kind: 'complete', result: '1', durationMs: 1 }
const dead: Outcome = { kind: 'dead', error: { name: 'Error', code: null, message: 'boom', stack: null } }

const files = tempFiles()
let handle: DatabaseSync
let engine: Engine

beforeEach(async (t) => {
  handle = new DatabaseSync(files.next())
  engine = await openEngine(handle, { clock: systemClock, migrate: true })
  const close = async (): Promise<void> => {
    await engine.close()
    handle.close()
  }
  if ('after' in t) t.after(close)
})

const links = (): number => Number(handle.prepare('SELECT count(*) AS links FROM job_after').get()?.links)

async function put(fields: Parameters<typeof newJob>[0] = {}): Promise<string> {
  const job = newJob(fields)
  await engine.enqueue([job])
  return job.id
}

const after = (id: string, ifDead: Predecessors['ifDead'] = 'wait') => ({ after: { ids: [id], ifDead } })

/** Settles everything that can be claimed, in one call. */
async function settleAll(outcome: Outcome): Promise<number> {
  const types = [{ type: newJob().type, leaseMs: 60_000 }]
  const consumer = await engine.consume({ types, worker: 'host:1:test' })
  const leases = await consumer.claim({ max: 50, waitMs: 0, signal: new AbortController().signal })
  await consumer.settle(leases.map((lease) => ({ lease, outcome })))
  await consumer.close()
  return leases.length
}

test('no link outlives the job that it holds back', async () => {
  const first = await put()
  for (let count = 0; count < 3; count += 1) await put(after(first))
  const cancelled = await put(after(first))
  assert.equal(links(), 4)
  await engine.controls?.cancel(cancelled, by)
  assert.equal(links(), 3)
  await settleAll(done)
  assert.equal(links(), 3, 'their results may still be asked for')
  await settleAll(done)
  assert.equal(links(), 0)
})

test('a dead letter keeps its links for a replay, and loses them when it is purged', async () => {
  const first = await put()
  const second = await put(after(first))
  await settleAll(done)
  await settleAll(dead)
  assert.equal(links(), 1)
  await engine.deadLetters?.discard([second], by)
  assert.equal(links(), 1)
  await engine.deadLetters?.remove([second], by)
  assert.equal(links(), 0)
})

test('a job of another program that is put back with its attempts used up lets those go that die with it', async () => {
  const first = await put()
  await put(after(first, 'die'))
  handle.prepare('UPDATE job_queue SET attempts = max_retries WHERE id = ?').run(first)
  assert.equal(await settleAll(done), 0)
  assert.equal(await settleAll(done), 1)
})

test('every statement finds its rows by an index', () => {
  const memory = new DatabaseSync(':memory:')
  applyMigrations(new Connection(memory), 0)
  for (const [name, sql] of Object.entries<unknown>({ ...dependencies })) {
    if (typeof sql !== 'string' || !/^\s*(?:SELECT|UPDATE|DELETE)/.test(sql)) continue
    const plan = memory.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]
    const scans = plan.map(({ detail }) => detail).filter((detail) => /^SCAN (?:job_queue|job_after)/.test(detail))
    // The one look whether there is any link at all stops at the first.
    assert.deepEqual(name === 'ANY_LINK' ? [] : scans, [], name)
  }
  memory.close()
})
