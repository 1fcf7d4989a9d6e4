import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type KeeperChaosOptions, runKeeperChaos } from '../chaos/keepers.ts'

const INTERVAL_MS = 500

async function round(t: TestContext, options: Pick<KeeperChaosOptions, 'blow' | 'missed' | 'strikes'>) {
  const report = await runKeeperChaos({ keepers: 3, everyMs: 2_000, interval: `${INTERVAL_MS}ms`, ...options })
  t.diagnostic(JSON.stringify(report))
  assert.ok(report.terms > 1, 'leadership never changed hands, so nothing was shown')
  assert.ok(report.ran >= 3, `only ${report.ran} ticks ran`)
  assert.equal(report.twice, 0, 'a tick ran twice')
  return report
}

describe('a schedule of every second, while its keepers are struck', () => {
  // A140 X066
  it('runs each tick once although the active keeper is killed, none missing', async (t) => {
    const report = await round(t, { blow: 'kill', missed: 'all', strikes: 2 })
    assert.equal(report.missing, 0)
  })

  // A140 X066
  it('misses no tick beyond the take-over where missed ones are made up for by one', async (t) => {
    const report = await round(t, { blow: 'kill', missed: 'one', strikes: 1 })
    // Twice the interval, rounded up to whole ticks, and what a machine may stand still; the times themselves are tried
    // in virtual time, with the keeper.
    assert.ok(report.gapMsMax <= Math.ceil((2 * INTERVAL_MS) / 1_000) * 1_000 + 10_000, `${report.gapMsMax} ms`)
  })

  // A140 X066
  it('runs none twice when the active keeper is paused past its lease and wakes up', async (t) => {
    const report = await round(t, { blow: 'pause', missed: 'all', strikes: 1 })
    assert.equal(report.missing, 0)
  })
})
