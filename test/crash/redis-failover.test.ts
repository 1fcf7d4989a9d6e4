/** A short try of each; `node test/chaos/redis-failover.ts` runs the long ones. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { judgeFailover } from '../chaos/failover-history.ts'
import { runFailover } from '../chaos/redis-failover.ts'

const PROMISE = { windowMs: 1_000, outageMaxMs: 5_000 }

test('the judge excuses what was acknowledged within the window, and nothing else', () => {
  const job = (id: string, atMs: number) => ({ id, type: 'a', calledAtMs: atMs, atMs, rejected: 0 })
  const history = {
    acknowledged: [job('early', 8_000), job('late', 9_500), job('after', 13_000)],
    completed: [],
    killedAtMs: 10_000,
    goneAtMs: 10_050,
    resumedAtMs: 12_500,
    stored: new Map<string, string>(),
  }
  const all = judgeFailover(history, PROMISE)
  assert.deepEqual([all.lost, all.violations.length], [1, 2])
  assert.equal(judgeFailover(history, { ...PROMISE, windowMs: null }).violations.length, 3)
  const stored = new Map([
    ['early', 'completed'],
    ['late', 'completed'],
    ['after', 'queued'],
  ])
  assert.match(judgeFailover({ ...history, stored }, PROMISE).violations.join(), /after.* is queued in the end/)
  const done = (id: string, ...times: readonly number[]) => times.map((atMs) => ({ id, atMs }))
  const completed = [...done('early', 8_100, 13_000), ...done('late', 9_800, 13_000)]
  const twice = judgeFailover({ ...history, acknowledged: [], completed }, PROMISE)
  assert.deepEqual([twice.completedTwice, twice.violations.length], [2, 1])
  assert.match(judgeFailover(history, { ...PROMISE, outageMaxMs: 2_000 }).violations.join(), /outage took 2450 ms/)
})

describe('a primary is killed under load, and nothing that was promised is lost', { concurrency: 1 }, () => {
  for (const [kind, replicas] of [
    ['cluster', 1],
    ['sentinel', 0],
  ] as const) {
    test(`${kind}, an enqueue confirmed by ${replicas === 0 ? 'the primary' : 'a replica'}`, async (t) => {
      const seed = Number(process.env.CHAOS_SEED ?? 20_261_117)
      t.diagnostic(`seed ${seed}`)
      const times = { beforeMs: 1_500, afterMs: 1_000, timeoutMs: 1_000 }
      const report = await runFailover({ kind, seed, replicas, ...times })
      t.diagnostic(JSON.stringify({ ...report, violations: report.violations.length }))
      assert.deepEqual(report.violations, [])
      assert.ok(report.affected > 0 && report.rejected + report.outageMs > 0, 'nothing was interrupted')
    })
  }
})
