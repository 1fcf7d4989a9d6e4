import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { openEngine } from '../../src/engine/open.ts'
import type { Lease } from '../../src/engine/outcome.ts'
import { systemClock } from '../../src/time/clock.ts'
import { runCli } from './in-process.ts'
import { JOBS, jsonLines, temporaryFolder } from './run.ts'

async function store(t: TestContext) {
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const cli = async (...args: string[]) => {
    const said = await runCli([...args, '--engine', url])
    assert.equal(said.err, '', args.join(' '))
    assert.equal(said.code, 0)
    return said.out
  }
  const json = async (...args: string[]) => jsonLines(await cli(...args, '--json'))
  const enqueue = async (...args: string[]) => String((await json('enqueue', ...args))[0]?.id)
  return { url, cli, json, enqueue }
}

/** Claims everything of a type as a worker that dies at once, and waits until its leases have run out. */
async function abandon(url: string, type: string): Promise<readonly Lease[]> {
  const engine = await openEngine(url, { clock: systemClock, migrate: false })
  const consumer = await engine.consume({ types: [{ type, leaseMs: 1 }], worker: 'host:1:dead' })
  const leases = await consumer.claim({ max: 10, waitMs: 1_000, signal: new AbortController().signal })
  await engine.close()
  while (leases.some((lease) => (lease.expiresAtMs ?? 0) >= systemClock.nowMs())) await systemClock.sleep(1)
  return leases
}

describe('commands', () => {
  it('enqueues with every option, and shows what was stored', async (t) => {
    const { cli, json, enqueue } = await store(t)
    assert.match(await cli('enqueue', 'bill', '{}'), /^[0-9A-HJKMNP-TV-Z]{26} enqueued\n$/)
    const id = await enqueue(
      ...['bill', '{"n":42}', '--key', 'bill-42', '--priority', '2', '--attempts', '7'],
      ...['--at', '2031-02-03T04:05:06Z', '--timeout', '90s', '--tenant', 'acme/north', '--name', 'invoice'],
    )
    const [shown] = await json('job', id)
    assert.partialDeepStrictEqual(shown, {
      id,
      type: 'bill',
      state: 'queued',
      key: 'bill-42',
      priority: 2,
      attempts: 7,
      attempt: 0,
      runAtMs: Date.UTC(2031, 1, 3, 4, 5, 6),
      options: { name: 'invoice', timeoutMs: 90_000 },
      tenant: { orgId: 'acme', workspaceId: 'north' },
    })
    const [delayed] = await json('job', await enqueue('bill', '{}', '--delay', '10m'))
    const waitMs = Number(delayed?.runAtMs) - Number(delayed?.createdAtMs)
    assert.equal(waitMs, 600_000)
  })

  it('takes schema and defaults from a module', async (t) => {
    const { json, enqueue } = await store(t)
    const [shown] = await json('job', await enqueue('greet', '{"name":"Ada"}', '--jobs', JOBS))
    assert.equal(shown?.priority, 4)
  })

  // I7 C15
  it('says duplicate, replaced and stale', async (t) => {
    const { json, enqueue } = await store(t)
    const first = await enqueue('bill', '{}', '--key', 'k')
    assert.deepEqual(await json('enqueue', 'bill', '{}', '--key', 'k'), [
      { id: first, type: 'bill', status: 'duplicate' },
    ])
    const older = await enqueue('index', '{}', '--latest', 'docs', '--seq', '5')
    const [newer] = await json('enqueue', 'index', '{}', '--latest', 'docs', '--seq', '6')
    assert.equal(newer?.status, 'replaced')
    assert.equal((await json('job', older))[0]?.state, 'superseded')
    const [stale] = await json('enqueue', 'index', '{}', '--latest', 'docs', '--seq', '6')
    assert.equal(stale?.status, 'stale')
  })

  it('lists by state, type and page, without payloads', async (t) => {
    const { cli, json, enqueue } = await store(t)
    const ids = [
      await enqueue('a', '"secret-payload"'),
      await enqueue('b', '"secret-payload"'),
      await enqueue('b', '"secret-payload"'),
    ]
    const listed = async (...args: string[]) => (await json('jobs', ...args)).map((job) => job.id)
    assert.deepEqual(await listed(), ids.toReversed())
    assert.deepEqual(await listed('--type', 'a'), [ids[0]])
    assert.deepEqual(await listed('--limit', '1'), [ids[2]])
    assert.deepEqual(await listed('--before', String(ids[2]), '--limit', '1'), [ids[1]])
    await cli('cancel', String(ids[1]))
    assert.deepEqual(await listed('--status', 'queued', '--type', 'b'), [ids[2]])
    assert.deepEqual(await listed('--status', 'completed'), [])
    for (const out of [await cli('jobs'), await cli('jobs', '--json'), await cli('job', String(ids[0]))]) {
      assert.ok(!out.includes('secret-payload'))
    }
    assert.match(await cli('job', String(ids[0]), '--payload'), /^payload +"secret-payload"$/m)
    const page = await cli('jobs', '--limit', '2')
    assert.match(page, /^ID +TYPE +STATE +PRI +TRY +AGE +DETAIL\n/)
    assert.match(page, new RegExp(`${ids[1]} +b +cancelled +5 +0/3`))
    assert.match(page, new RegExp(`add --before ${ids[1]}\n$`))
  })

  it('searches, and lists by tags, which a search may say too', async (t) => {
    const { cli, json, enqueue } = await store(t)
    const first = await enqueue('a', '{"to":"ada"}', '--tag', 'import-7', 'urgent')
    const second = await enqueue('b', '{"to":"bob"}', '--tag', 'import-7', '--key', 'invoice-1')
    await enqueue('b', '{"to":"eve"}')
    const found = async (...args: string[]) => (await json('jobs', ...args)).map((job) => job.id)
    assert.deepEqual(await found('--tag', 'import-7'), [second, first])
    assert.deepEqual(await found('--tag', 'import-7', 'urgent'), [first])
    assert.deepEqual(await found('--tag', 'import-7', '--type', 'b'), [second])
    assert.deepEqual(await found('--search', 'tag:import-7 type:a since:1h'), [first])
    assert.deepEqual(await found('--search', 'payload.to:bob', '--status', 'queued'), [second])
    assert.deepEqual(await found('--search', 'invoice-1'), [second])
    assert.deepEqual(await found('--tag', 'import-7', '--limit', '1'), [second])
    assert.deepEqual(await found('--search', 'tag:import-8'), [])
    assert.match(await cli('jobs', '--search', 'tag:import-8'), /^No jobs/)
    const refused = await runCli(['jobs', '--search', 'since:soon', '--engine', 'memory:'])
    assert.notEqual(refused.code, 0)
  })

  it('fits a table to the terminal', async (t) => {
    const { url, enqueue } = await store(t)
    const id = await enqueue('a-rather-long-type-of-a-job', '{}')
    const database = new DatabaseSync(url.slice('sqlite:'.length))
    database.prepare(`UPDATE job_queue SET error = ? WHERE id = ?`).run('because '.repeat(40), id)
    database.close()
    const { out } = await runCli(['jobs', '--engine', url], 90)
    for (const line of out.trimEnd().split('\n')) assert.ok(line.length <= 90, line)
    assert.match(out, /…\n$/)
    // A program gets it whole.
    assert.doesNotMatch((await runCli(['jobs', '--engine', url])).out, /…/)
  })

  it('cancels once, with who and why in the history and in the audit', async (t) => {
    const { url, cli, json, enqueue } = await store(t)
    const id = await enqueue('bill', '{}')
    assert.equal(await cli('cancel', id, '--dry-run'), `${id} would be cancelled; nothing was changed\n`)
    assert.partialDeepStrictEqual(await json('cancel', id, '--dry-run'), [{ cancelled: false, dryRun: true }])
    assert.equal((await json('job', id))[0]?.state, 'queued')
    assert.equal(await cli('cancel', id, '--reason', 'sent twice', '--who', 'ada'), `${id} cancelled\n`)
    const [shown] = await json('job', id)
    assert.equal(shown?.state, 'cancelled')
    assert.deepEqual(
      (await json('jobs', '--status', 'cancelled')).map((job) => [job.id, job.state]),
      [[id, 'cancelled']],
    )
    assert.match(await cli('jobs'), /bill +cancelled /)
    assert.deepEqual(await json('jobs', '--status', 'dead_letter'), [])
    assert.match(JSON.stringify(shown?.history), /"cancelled".*"sent twice"/)
    assert.match(JSON.stringify(shown?.history), /"cancelled".*"ada"/)
    const audit = await json('audit')
    assert.equal(audit.length, 1)
    assert.partialDeepStrictEqual(audit, [
      { action: 'cancel', jobId: id, type: 'bill', who: 'ada', reason: 'sent twice', before: { state: 'queued' } },
    ])
    const again = await runCli(['cancel', id, '--engine', url])
    assert.match(again.err, /is cancelled.*ERR_STATE_TRANSITION/)
    assert.equal(again.code, 1)
    assert.equal((await runCli(['cancel', id, '--dry-run', '--engine', url])).code, 1)
    for (const command of ['cancel', 'job']) {
      const unknown = await runCli([command, '01ARZ3NDEKTSV4RRFFQ69G5FAV', '--engine', url])
      assert.match(unknown.err, /01ARZ3NDEKTSV4RRFFQ69G5FAV.*ERR_JOB_UNKNOWN/)
      assert.equal(unknown.code, 1)
    }
  })

  it('counts by type, with totals', async (t) => {
    const { cli, json, enqueue } = await store(t)
    await enqueue('a', '{}')
    await enqueue('b', '{}')
    await enqueue('b', '{}', '--delay', '1h')
    const none = { inProgress: 0, completed: 0, dead: 0 }
    assert.deepEqual(await json('stats'), [
      { type: 'a', ready: 1, delayed: 0, ...none },
      { type: 'b', ready: 1, delayed: 1, ...none },
      { type: '*', ready: 2, delayed: 1, ...none },
    ])
    assert.match(await cli('stats'), /^total +2 +1 +0 +0 +0$/m)
  })

  it('migrates, says so once, and shows the SQL without running it', async (t) => {
    const { url, cli, json } = await store(t)
    const plan = await cli('migrate', '--dry-run')
    assert.match(plan, /CREATE TABLE IF NOT EXISTS job_queue/)
    assert.match((await runCli(['stats', '--engine', url])).err, /ERR_SCHEMA_MISSING/)
    const [made] = await json('migrate')
    assert.equal(made?.from, 0)
    assert.ok(Number(made?.to) >= 1)
    assert.match(await cli('migrate'), /nothing to do/)
    assert.match(await cli('stats'), /^total/m)
  })

  // I5 I6 B139
  it('reaps what dead workers left: back to the queue, or dead after the last start', async (t) => {
    const { url, cli, json, enqueue } = await store(t)
    const again = await enqueue('fragile', '{}')
    const last = await enqueue('fragile', '{}', '--attempts', '1')
    assert.equal((await abandon(url, 'fragile')).length, 2)
    const lines = await json('reap')
    assert.deepEqual(lines.at(-1), { retried: 1, dead: 1 })
    assert.deepEqual(
      new Map(lines.slice(0, -1).map((line) => [line.id, line.outcome])),
      new Map([
        [again, 'retry'],
        [last, 'dead'],
      ]),
    )
    assert.equal((await json('job', again))[0]?.state, 'queued')
    assert.equal((await json('job', last))[0]?.state, 'dead_letter')
    assert.equal(await cli('reap'), '0 back in the queue, 0 dead.\n')
  })
})
