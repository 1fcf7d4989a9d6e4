/**
 * Which arguments the compiler demands of the functions of job tables, and that the run time demands them too. `npm run
 * types` compiles this file: an `@ts-expect-error` over a line that compiles is an error.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openJobTables } from 'millrace/workloads/job-tables'
import { jobTables } from '../fixtures/job-tables.ts'

type Refusal = { readonly ok: boolean; readonly code?: string }

function assertCode(result: Refusal, code: string): void {
  assert.deepEqual([result.ok, result.code], [false, code])
}

describe('one table', () => {
  // E09 E10 E11
  test('the functions take exactly the three arguments of the design', async (t) => {
    const { pool, insert, row } = bound(await jobTables(t))
    const { claimJob, heartbeatJob, finishJob, listDue, queueAge, insertJob } = openJobTables(pool, {
      tables: ['asr_jobs'],
    })
    await insert('asr_jobs', { id: 1 })
    assert.deepEqual(await listDue(), { ok: true, value: ['1'] })
    const claimed = await claimJob('1', 'worker-1', 300)
    assert.ok(claimed.ok)
    assert.ok((await heartbeatJob('1', 'worker-1', 300)).ok)
    const finished = await finishJob('1', false, { code: 'E_ASR', reason: 'no audio' })
    assert.ok(finished.ok)
    assert.equal(finished.value.status, 'queued')
    assert.deepEqual([(await row('asr_jobs', '1')).fail_code, (await queueAge()).ok], ['E_ASR', true])
    assert.ok((await insertJob({ id: 2 })).ok)
    // Naming it is allowed, and another name is not.
    assert.ok((await claimJob('2', 'worker-1', 300, { table: 'asr_jobs' })).ok)
    // @ts-expect-error not the table that was configured
    assertCode(await finishJob('2', true, undefined, { table: 'jobs' }), 'unknown_table')
    assert.ok((await finishJob('2', true)).ok)
  })
})

describe('several tables', () => {
  test('the table must be named', async (t) => {
    const { pool } = await jobTables(t)
    const { claimJob, heartbeatJob, finishJob, keepLease, listDue, queueAge, insertJob } = openJobTables(pool)
    // @ts-expect-error no table
    assertCode(await claimJob('a', 'worker-1', 300), 'unknown_table')
    // @ts-expect-error no table
    assertCode(await heartbeatJob('a', 'worker-1', 300), 'unknown_table')
    // @ts-expect-error no table
    assertCode(await finishJob('a', true), 'unknown_table')
    // @ts-expect-error no table
    assertCode(await finishJob('a', true, undefined, { workerId: 'worker-1' }), 'unknown_table')
    // @ts-expect-error no table
    assertCode(await listDue(), 'unknown_table')
    // @ts-expect-error no table
    assertCode(await queueAge({}), 'unknown_table')
    // @ts-expect-error no table
    assertCode(await insertJob({}), 'unknown_table')
    // @ts-expect-error no table
    await keepLease('a', 'worker-1').stop()
    // @ts-expect-error not a configured table
    assertCode(await claimJob('a', 'worker-1', 300, { table: 'clips' }), 'unknown_table')
  })

  test('a list that the compiler does not know counts as several', async (t) => {
    const { pool } = await jobTables(t)
    const names: readonly string[] = ['jobs', 'asr_jobs']
    const { claimJob } = openJobTables(pool, { tables: names })
    // @ts-expect-error no table
    assertCode(await claimJob('a', 'worker-1', 300), 'unknown_table')
    assertCode(await claimJob('a', 'worker-1', 300, { table: 'jobs' }), 'not_claimable')
  })
})

describe(`fence: 'required'`, () => {
  test('a finish needs the worker and the attempt, a heartbeat the attempt', async (t) => {
    const { pool, insert, row } = bound(await jobTables(t))
    await insert('jobs', { id: 'a' })
    const { claimJob, heartbeatJob, finishJob, keepLease } = openJobTables(pool, {
      tables: ['jobs'],
      fence: 'required',
    })
    const claimed = await claimJob('a', 'worker-1', 300)
    assert.ok(claimed.ok)
    const { attempt } = claimed.value
    // @ts-expect-error no worker and no attempt
    assertCode(await finishJob('a', true), 'invalid_argument')
    // @ts-expect-error no attempt
    assertCode(await finishJob('a', true, undefined, { workerId: 'worker-1' }), 'invalid_argument')
    // @ts-expect-error no worker
    assertCode(await finishJob('a', true, undefined, { attempt }), 'invalid_argument')
    // @ts-expect-error no attempt
    assertCode(await heartbeatJob('a', 'worker-1', 300), 'invalid_argument')
    // @ts-expect-error no attempt
    await keepLease('a', 'worker-1').stop()
    assert.equal((await row('jobs', 'a')).status, 'processing')
    assert.ok((await heartbeatJob('a', 'worker-1', 300, { attempt })).ok)
    assertCode(await finishJob('a', true, undefined, { workerId: 'worker-2', attempt }), 'lease_lost')
    assert.ok((await finishJob('a', true, undefined, { workerId: 'worker-1', attempt })).ok)
  })

  test('an unknown fence or option is refused', async (t) => {
    const { pool } = await jobTables(t)
    // @ts-expect-error no such fence
    assert.throws(() => openJobTables(pool, { fence: 'strict' }), { code: 'ERR_OPTION_INVALID' })
    // @ts-expect-error a misspelt option
    assert.throws(() => openJobTables(pool, { fences: 'required' }), /did you mean 'fence'/)
  })
})

function bound(fixture: Awaited<ReturnType<typeof jobTables>>) {
  const { pool } = fixture
  return { pool, insert: fixture.insert.bind(fixture), row: fixture.row.bind(fixture) }
}
