import assert from 'node:assert/strict'
import { leadershipOf } from '../../../src/engine/capability-checks.ts'
import type { CaseFile } from '../../case.ts'
import { leadership, need } from '../../needs.ts'

const ELECTION = 'suite'

export const leading: CaseFile = {
  level: 'port',
  concept: 'Leadership',
  cases: [
    {
      // A140
      name: 'of two candidates one becomes leader, and both learn who',
      guarantees: ['I2'],
      ...need(leadership),
      async run(stage) {
        const [one, other] = [leadershipOf(stage.engine), leadershipOf(await stage.other())]
        assert.equal(await one.leader(ELECTION), null)
        const terms = await Promise.all([
          one.campaign(ELECTION, 'a', stage.leaseMs),
          other.campaign(ELECTION, 'b', stage.leaseMs),
        ])
        const holders = new Set(terms.map(({ holder }) => holder))
        assert.equal(holders.size, 1, 'two candidates were told that they lead')
        for (const view of [one, other]) assert.ok(holders.has((await view.leader(ELECTION))?.holder ?? ''))
        for (const { leftMs } of terms) assert.ok(leftMs > 0 && leftMs <= stage.leaseMs, `${leftMs} ms are left`)
      },
    },
    {
      name: 'leadership is free when its term has expired, and the term number grows with each new leader',
      guarantees: ['I2', 'I6'],
      ...need(leadership),
      async run(stage) {
        const [one, other] = [leadershipOf(stage.engine), leadershipOf(await stage.other())]
        const first = await one.campaign(ELECTION, 'a', stage.leaseMs)
        await stage.harness.advance(stage.leaseMs + 1)
        assert.equal(await other.leader(ELECTION), null)
        const second = await other.campaign(ELECTION, 'b', stage.leaseMs)
        assert.equal(second.holder, 'b')
        assert.ok(second.number > first.number, 'the number did not grow')
        // A holder that was paused finds out when it looks.
        assert.equal((await one.campaign(ELECTION, 'a', stage.leaseMs)).holder, 'b')
      },
    },
    {
      name: 'a leader that campaigns again in time keeps its term',
      guarantees: ['I2'],
      ...need(leadership),
      async run(stage) {
        const [one, other] = [leadershipOf(stage.engine), leadershipOf(await stage.other())]
        const first = await one.campaign(ELECTION, 'a', stage.leaseMs)
        for (let turn = 0; turn < 4; turn += 1) {
          await stage.harness.advance(stage.leaseMs * 0.6)
          const term = await one.campaign(ELECTION, 'a', stage.leaseMs)
          assert.deepEqual([term.holder, term.number], ['a', first.number])
          assert.equal((await other.campaign(ELECTION, 'b', stage.leaseMs)).holder, 'a')
        }
      },
    },
    {
      name: 'a leader that resigns frees the leadership at once, and no one else can',
      guarantees: ['I6'],
      ...need(leadership),
      async run(stage) {
        const [one, other] = [leadershipOf(stage.engine), leadershipOf(await stage.other())]
        const first = await one.campaign(ELECTION, 'a', stage.leaseMs)
        await other.resign(ELECTION, 'b')
        assert.equal((await one.leader(ELECTION))?.holder, 'a')
        await one.resign(ELECTION, 'a')
        assert.equal(await other.leader(ELECTION), null)
        const next = await other.campaign(ELECTION, 'b', stage.leaseMs)
        assert.equal(next.holder, 'b')
        assert.ok(next.number > first.number, 'the number did not grow')
      },
    },
    {
      name: 'elections with different names are independent',
      guarantees: ['I2'],
      ...need(leadership),
      async run(stage) {
        const elections = leadershipOf(stage.engine)
        await elections.campaign('one', 'a', stage.leaseMs)
        assert.equal((await elections.campaign('other', 'b', stage.leaseMs)).holder, 'b')
        assert.equal((await elections.leader('one'))?.holder, 'a')
      },
    },
  ],
}
