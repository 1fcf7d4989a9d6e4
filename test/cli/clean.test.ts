import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { Mill } from '../../src/client/mill.ts'
import { openEngine } from '../../src/engine/open.ts'
import { defineJob } from '../../src/job/definition.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { systemClock } from '../../src/time/clock.ts'
import { claimAll } from '../fixtures/claim.ts'
import { runCli } from './in-process.ts'
import { jsonLines, temporaryFolder } from './run.ts'

const DAY_MS = 86_400_000

/** Jobs that finished eight days ago and now. */
async function store(t: TestContext) {
  const file = `${await temporaryFolder(t)}/jobs.db`
  const url = `sqlite:${file}`
  const finish = async (type: string, daysAgo: number, kind: 'complete' | 'dead' = 'complete', count = 1) => {
    const clock = new TestClock(systemClock.nowMs() - daysAgo * DAY_MS - 1_000)
    const engine = await openEngine(url, { clock, migrate: true })
    const mill = new Mill(engine, { clock })
    await mill.enqueueMany(
      defineJob({ type }),
      Array.from({ length: count }, (_, n) => n),
    )
    const consumer = await engine.consume({ types: [{ type, leaseMs: 60_000 }], worker: 'host:1:1' })
    const leases = await claimAll(consumer, count)
    const error = { name: 'Error', code: null, message: 'x', stack: null }
    const outcome = kind === 'dead' ? ({ kind, error } as const) : ({ kind, result: '1', durationMs: 1 } as const)
    await consumer.settle(leases.map((lease) => ({ lease, outcome })))
    await mill.close()
  }
  const said = (...args: string[]) => runCli(['clean', ...args, '--engine', url])
  const states = () => {
    const handle = new DatabaseSync(file, { readOnly: true })
    const rows = handle.prepare(
      'SELECT type, status, count(*) AS count FROM job_queue GROUP BY type, status ORDER BY 1, 2',
    )
    const counted = rows.all().map(({ type, status, count }) => `${type} ${status} ${count}`)
    handle.close()
    return counted
  }
  return { url, finish, said, states }
}

describe('millrace clean', () => {
  // B167
  it('removes what was completed more than seven days ago, and only that', async (t) => {
    const { finish, said, states } = await store(t)
    await finish('a', 8, 'complete', 300)
    await finish('a', 6)
    await finish('a', 8, 'dead')
    assert.match((await said('--dry-run')).out, /^300 completed jobs would be removed; nothing was changed$/m)
    assert.deepEqual(states(), ['a completed 301', 'a dead_letter 1'])
    const { out, code } = await said('--yes')
    assert.deepEqual([out, code], ['300 completed jobs removed\n', 0])
    assert.deepEqual(states(), ['a completed 1', 'a dead_letter 1'])
  })

  it('takes another age and one type, and answers in JSON', async (t) => {
    const { finish, said, states } = await store(t)
    await finish('a', 2)
    await finish('b', 2)
    const { out } = await said('--older-than', '1d', '--type', 'b', '--yes', '--json')
    assert.deepEqual(jsonLines(out), [{ state: 'completed', removed: 1, dryRun: false, interrupted: false }])
    assert.deepEqual(states(), ['a completed 1'])
  })

  it('removes nothing without a yes, and no dead letter without a reason', async (t) => {
    const { finish, said, states } = await store(t)
    await finish('a', 8)
    await finish('a', 8, 'dead')
    const refused: readonly [args: readonly string[], says: RegExp][] = [
      [[], /add --yes/],
      [['--state', 'dead', '--yes'], /add --reason/],
      [['--state', 'dead', '--reason', 'old'], /--critical, or add --force/],
      [['--state', 'queued', '--yes'], /Allowed choices are completed, ended, dead/],
    ]
    for (const [args, says] of refused) {
      const { code, err } = await said(...args)
      assert.equal(code, 2, args.join(' '))
      assert.match(err, says)
    }
    assert.deepEqual(states(), ['a completed 1', 'a dead_letter 1'])
  })

  // X013
  it('removes dead letters with an audit, but for critical types', async (t) => {
    const { url, finish, said, states } = await store(t)
    await finish('bill', 8, 'dead')
    await finish('mail', 8, 'dead')
    const dead = ['--state', 'dead', '--reason', 'too old', '--who', 'ann']
    assert.equal((await said(...dead, '--critical', 'bill')).out, '1 dead letters removed\n')
    assert.deepEqual(states(), ['bill dead_letter 1'])
    const { out } = await runCli(['audit', '--json', '--engine', url])
    const [entry] = jsonLines(out)
    assert.deepEqual([entry?.who, entry?.reason, entry?.action, entry?.type], ['ann', 'too old', 'purge', 'mail'])
    assert.equal((await said(...dead, '--force')).out, '1 dead letters removed\n')
    assert.deepEqual(states(), [])
  })
})
