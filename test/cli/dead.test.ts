import assert from 'node:assert/strict'
import { userInfo } from 'node:os'
import { describe, it, type TestContext } from 'node:test'
import { Mill } from '../../src/client/mill.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { openEngine } from '../../src/engine/open.ts'
import { defineJob } from '../../src/job/definition.ts'
import { systemClock } from '../../src/time/clock.ts'
import { claimAll } from '../fixtures/claim.ts'
import { runCli } from './in-process.ts'
import { JOBS, jsonLines, startMillrace, temporaryFolder, until } from './run.ts'

async function store(t: TestContext) {
  const url = `sqlite:${await temporaryFolder(t)}/jobs.db`
  const said = (...args: string[]) => runCli([...args, '--engine', url])
  const cli = async (...args: string[]) => {
    const { code, out, err } = await said(...args)
    assert.deepEqual([err, code], ['', 0], args.join(' '))
    return out
  }
  const json = async (...args: string[]) => jsonLines(await cli(...args, '--json'))
  /** One dead letter of a type, with an error. */
  const bury = async (type: string, message: string, ...args: string[]) => {
    const id = String((await json('enqueue', type, '{"name":"Ada"}', ...args))[0]?.id)
    const engine = await openEngine(url, { clock: systemClock, migrate: false })
    const consumer = await engine.consume({ types: [{ type, leaseMs: 60_000 }], worker: 'host:1:1' })
    const leases = await consumer.claim({ max: 10, waitMs: 1_000, signal: new AbortController().signal })
    const error = { name: 'Error', code: 'E_TEST', message, stack: 'at here:1' }
    await consumer.settle(leases.map((lease) => ({ lease, outcome: { kind: 'dead', error } })))
    await engine.close()
    return id
  }
  return { url, said, cli, json, bury }
}

async function buryMany(engine: Engine, count: number): Promise<void> {
  const mill = new Mill(engine, {})
  await mill.enqueueMany(
    defineJob({ type: 'bulk' }),
    Array.from({ length: count }, (_, n) => n),
  )
  const consumer = await engine.consume({ types: [{ type: 'bulk', leaseMs: 60_000 }], worker: 'host:1:1' })
  const leases = await claimAll(consumer, count)
  const error = { name: 'Error', code: null, message: 'x', stack: null }
  await consumer.settle(leases.map((lease) => ({ lease, outcome: { kind: 'dead', error } })))
}

describe('dead list and show', () => {
  // B129 A165
  it('lists letters and causes, without payloads', async (t) => {
    const { cli, json, bury } = await store(t)
    await cli('migrate')
    assert.equal(await cli('dead', 'list'), 'No dead letters.\n')
    const first = await bury('bill', 'no invoice 1')
    const second = await bury('bill', 'no invoice 2')
    const third = await bury('greet', 'no mailbox')
    const table = await cli('dead', 'list')
    const causesOf = (lines: readonly Record<string, unknown>[]) => lines.map(({ fingerprint }) => fingerprint)
    assert.deepEqual(
      causesOf(await json('dead')),
      causesOf(await json('dead', 'list')),
      'dead alone lists, as schedules does',
    )
    assert.equal((await json('dead', '--groups')).length, (await json('dead', 'list', '--groups')).length)
    assert.match(table, /^ID +TYPE +TRY +REPLAYS +AGE +DIED +CAUSE +ERROR\n/)
    assert.deepEqual(
      table
        .split('\n')
        .slice(1, 4)
        .map((line) => line.slice(0, 26)),
      [third, second, first],
    )
    assert.doesNotMatch(table, /Ada/)
    const [group] = await json('dead', 'list', '--groups')
    assert.partialDeepStrictEqual(group, { type: 'bill', count: 2, error: 'Error: no invoice <n>' })
    assert.match(await cli('dead', 'list', '--groups'), /2 +bill +.* Error: no invoice <n>\n/)
    const letters = await json('dead', 'list', '--error', String(group?.fingerprint))
    assert.deepEqual(
      letters.map(({ job }) => Reflect.get(Object(job), 'id')),
      [second, first],
    )
    assert.equal('payload' in Object(letters[0]?.job), false)
    const found = await json('dead', 'list', '--search', 'type:bill error:"invoice 2"')
    assert.deepEqual(
      found.map(({ job }) => Reflect.get(Object(job), 'id')),
      [second],
    )
    assert.deepEqual(await json('dead', 'list', '--older-than', '1h'), [])
    assert.equal((await json('dead', 'list', '--newer-than', '1h', '--limit', '1')).length, 1)
  })

  it('shows one with its error, history and audit', async (t) => {
    const { cli, json, said, bury } = await store(t)
    const id = await bury('bill', 'no invoice 1', '--tenant', 'acme/north')
    const shown = await cli('dead', 'show', id)
    for (const part of [/no invoice 1/, /at here:1/, /acme\/north/, /replays +0/, / dead /]) assert.match(shown, part)
    assert.doesNotMatch(shown, /Ada/)
    assert.match(await cli('dead', 'show', id, '--payload'), /"Ada"/)
    assert.equal((await json('dead', 'show', id, '--payload'))[0]?.payload, '{"name":"Ada"}')
    const missing = await said('dead', 'show', 'nobody')
    assert.equal(missing.code, 1)
    assert.match(missing.err, /Dead letter not found: nobody.*\(ERR_JOB_UNKNOWN\)/)
  })
})

describe('dead replay', () => {
  it('puts one back, once, and audits who and why', async (t) => {
    const { cli, json, said, bury } = await store(t)
    const id = await bury('bill', 'x')
    assert.equal(await cli('dead', 'replay', id, '--reason', 'mended'), `${id} replayed\n`)
    assert.partialDeepStrictEqual((await json('job', id))[0], { state: 'queued', replays: 1, attempt: 0 })
    const again = await said('dead', 'replay', id)
    assert.equal(again.code, 1)
    assert.match(again.err, /Dead letter not found/)
    const entry = { who: userInfo().username, reason: 'mended', action: 'replay', jobId: id }
    assert.partialDeepStrictEqual((await json('audit'))[0], entry)
  })

  it('erases a job by id, also one that was purged, and says why another is left', async (t) => {
    const { cli, said, json, bury } = await store(t)
    await cli('migrate')
    const [purged, dead] = [await bury('bill', 'no invoice of Ada'), await bury('bill', 'no invoice of Ada')]
    await cli('dead', 'purge', purged, '--reason', 'retention', '--force')
    const waiting = String((await json('enqueue', 'bill', '{"name":"Ada"}'))[0]?.id)
    assert.equal((await said('dead', 'erase', dead)).code, 2, 'a reason is needed')
    const left = await said('dead', 'erase', purged, dead, waiting, '--reason', 'request 4711')
    assert.match(left.out, /^2 erased\n1 left as they are: still running or waiting/)
    assert.match(left.err, /1 of the ids were not erased/)
    const audit = await json('audit')
    assert.deepEqual(
      audit.map(({ action, jobId }) => [action, jobId]),
      [
        ['erase', dead],
        ['erase', purged],
        ['purge', purged],
      ],
    )
    assert.doesNotMatch(JSON.stringify(audit), /Ada/)
  })

  it('takes an edited payload that fits the schema', async (t) => {
    const { json, said, cli, bury } = await store(t)
    const id = await bury('greet', 'x')
    const wrong = await said('dead', 'replay', id, '--payload', '{"name":7}', '--jobs', JOBS)
    assert.deepEqual([wrong.code, /ERR_PAYLOAD_INVALID/.test(wrong.err)], [2, true])
    const noJson = await said('dead', 'replay', id, '--payload', '{')
    assert.deepEqual([noJson.code, /ERR_PAYLOAD_NOT_JSON/.test(noJson.err)], [2, true])
    await cli('dead', 'replay', id, '--payload', '{"name":"Bob"}', '--jobs', JOBS)
    assert.equal((await json('job', id, '--payload'))[0]?.payload, '{"name":"Bob"}')
    assert.equal((await said('dead', 'replay', 'a', 'b', '--payload', '{}')).code, 2)
  })

  // B128
  it('replays all of a filter, after a dry run that changes nothing', async (t) => {
    const { cli, json, bury } = await store(t)
    await bury('bill', 'x')
    await bury('bill', 'y')
    await bury('greet', 'z')
    const dry = await cli('dead', 'replay-all', '--type', 'bill', '--dry-run')
    assert.match(dry, /^2 would be replayed; nothing was changed\nexactly these: add --before \S+Z\n$/)
    assert.equal((await json('dead', 'list')).length, 3)
    assert.equal(await cli('dead', 'replay-all', '--type', 'bill', '--rate', '1000'), '2 replayed\n')
    assert.equal((await json('dead', 'list')).length, 1)
    assert.partialDeepStrictEqual((await json('dead', 'replay-all'))[0], { done: 1, seen: 1, interrupted: false })
    assert.equal((await json('audit', '--action', 'replay')).length, 3)
  })

  it('acts on what it showed, and on nothing that died since', async (t) => {
    const { cli, json, said, bury } = await store(t)
    await bury('bill', 'no invoice 1')
    await bury('bill', 'no invoice 2')
    const [, before = ''] = /--before (\S+)/.exec(await cli('dead', 'list', '--groups')) ?? []
    const later = await bury('bill', 'no invoice 3')
    assert.equal(await cli('dead', 'replay-all', '--before', before), '2 replayed\n')
    assert.deepEqual(
      (await json('dead', 'list')).map(({ job }) => Reflect.get(Object(job), 'id')),
      [later],
    )
    assert.equal((await said('dead', 'list', '--before', 'yesterday')).code, 2)
    assert.match(await cli('dead', 'list', '--limit', '1'), /the newest 1; see more with --limit/)
  })

  it('leaves alone what was replayed too often', async (t) => {
    const { cli, said, bury } = await store(t)
    const id = await bury('bill', 'x')
    await cli('dead', 'replay', id)
    await bury('bill', 'y')
    const refused = await said('dead', 'replay', id, '--max-replays', '1')
    assert.deepEqual([refused.code, /ERR_DESK_REFUSED/.test(refused.err)], [1, true])
    assert.equal(
      await cli('dead', 'replay-all', '--max-replays', '1'),
      '1 replayed\n1 left as they are: replayed too often (--force)\n',
    )
    assert.equal(await cli('dead', 'replay', id, '--max-replays', '1', '--force'), `${id} replayed\n`)
  })

  it('stops at Ctrl-C, and the same command goes on without replaying one twice', async (t) => {
    const { url, json } = await store(t)
    const engine = await openEngine(url, { clock: systemClock, migrate: true })
    t.after(() => engine.close())
    await buryMany(engine, 60)
    // So slowly that some are left however late the signal comes.
    const args = ['dead', 'replay-all', '--rate', '1', '--engine', url]
    const running = startMillrace(t, args)
    await until(async () => ((await engine.counts()).bulk?.ready ?? 0) > 0)
    running.child.kill('SIGINT')
    const { code, err } = await running.ended
    assert.deepEqual([code, /repeat the command to continue/.test(err)], [1, true], err)
    const left = (await engine.counts()).bulk?.dead ?? 0
    assert.ok(left > 0 && left < 60, `${left} left`)
    const [rest] = await json('dead', 'replay-all')
    assert.equal(rest?.done, left)
    const jobs = (await engine.inspector?.list({ limit: 100 })) ?? []
    assert.deepEqual([jobs.length, new Set(jobs.map(({ replays }) => replays))], [60, new Set([1])])
  })
})

describe('dead discard, undo and purge', () => {
  it('discard with a reason, and undo', async (t) => {
    const { cli, json, said, bury } = await store(t)
    const id = await bury('bill', 'x')
    const bare = await said('dead', 'discard', id)
    assert.deepEqual([bare.code, /--reason/.test(bare.err)], [2, true])
    const nothing = await said('dead', 'discard', '--reason', 'x')
    assert.deepEqual([nothing.code, /no letters are selected/.test(nothing.err)], [2, true])
    assert.equal((await said('dead', 'discard', id, '--all', '--reason', 'x')).code, 2)
    assert.match(await cli('dead', 'discard', id, '--reason', 'x', '--dry-run'), /^1 would be discarded/)
    assert.equal(await cli('dead', 'discard', id, '--reason', 'x', '--who', 'ann'), '1 discarded\n')
    assert.equal((await json('job', id))[0]?.state, 'discarded')
    const again = await said('dead', 'discard', id, '--reason', 'x')
    assert.deepEqual([again.code, /ERR_DESK_REFUSED/.test(again.err)], [1, true])
    assert.equal(await cli('dead', 'undo', id), `${id} is a dead letter again\n`)
    assert.equal((await json('dead', 'list')).length, 1)
    assert.match(await cli('audit', '--by', 'ann'), /discard +.*bill +x\n/)
  })

  // A173 B203 X013
  it('purge leaves critical types alone unless forced', async (t) => {
    const { cli, json, said, bury } = await store(t)
    const [erase, bill] = [await bury('erase', 'x'), await bury('bill', 'y')]
    const unknown = await said('dead', 'purge', '--all', '--reason', 'old')
    assert.deepEqual([unknown.code, /critical types are unknown/.test(unknown.err)], [2, true])
    const purge = ['dead', 'purge', '--all', '--reason', 'old', '--critical', 'erase'] as const
    const left = '1 left as they are: critical (discard them first, or --force)\n'
    const dry = await cli(...purge, '--dry-run')
    assert.ok(dry.startsWith('1 would be purged; nothing was changed\n') && dry.endsWith(left), dry)
    assert.equal(await cli(...purge), `1 purged\n${left}`)
    assert.equal((await said('job', bill)).code, 1)
    assert.equal(await cli('dead', 'purge', erase, '--reason', 'old', '--force'), '1 purged\n')
    assert.deepEqual(
      (await json('audit', '--action', 'purge')).map(({ jobId, after }) => [jobId, after]),
      [
        [erase, null],
        [bill, null],
      ],
    )
  })

  it('teaches by examples', async () => {
    for (const command of ['list', 'show', 'replay', 'replay-all', 'discard', 'undo', 'purge']) {
      const { out, code } = await runCli(['dead', command, '--help'])
      assert.deepEqual([code, /Examples:\n {2}millrace dead /.test(out)], [0, true], command)
    }
    assert.match((await runCli(['audit', '--help'])).out, /Examples:\n {2}millrace audit/)
  })
})
