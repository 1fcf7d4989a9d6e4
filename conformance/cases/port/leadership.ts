import assert from 'node:assert/strict'
import { leadershipOf } from '../../../src/engine/capability-checks.ts'
import type { CaseFile } from '../../case.ts'
import { leadership, need } from '../../needs.ts'

const OFFICE = 'suite'

export const leading: CaseFile = {
  level: 'port',
  concept: 'Leadership',
  cases: [
    {
      // A140
      name: 'of two that campaign one holds the office, and both are told who',
      guarantees: ['I2'],
      ...need(leadership),
      async run(stage) {
        const [one, other] = [leadershipOf(stage.engine), leadershipOf(await stage.other())]
        assert.equal(await one.leader(OFFICE), null)
        const terms = await Promise.all([
          one.campaign(OFFICE, 'a', stage.leaseMs),
          other.campaign(OFFICE, 'b', stage.leaseMs),
        ])
        const holders = new Set(terms.map(({ holder }) => holder))
        assert.equal(holders.size, 1, 'two were told that they hold the office')
        for (const view of [one, other]) assert.ok(holders.has((await view.leader(OFFICE))?.holder ?? ''))
        for (const { leftMs } of terms) assert.ok(leftMs > 0 && leftMs <= stage.leaseMs, `${leftMs} ms are left`)
      },
    },
    {
      name: 'an office is free when its term has run out, and its number grows when it changes hands',
      guarantees: ['I2', 'I6'],
      ...need(leadership),
      async run(stage) {
        const [one, other] = [leadershipOf(stage.engine), leadershipOf(await stage.other())]
        const first = await one.campaign(OFFICE, 'a', stage.leaseMs)
        await stage.harness.advance(stage.leaseMs + 1)
        assert.equal(await other.leader(OFFICE), null)
        const second = await other.campaign(OFFICE, 'b', stage.leaseMs)
        assert.equal(second.holder, 'b')
        assert.ok(second.number > first.number, 'the number did not grow')
        // A holder that was paused finds out when it looks.
        assert.equal((await one.campaign(OFFICE, 'a', stage.leaseMs)).holder, 'b')
      },
    },
    {
      name: 'who campaigns again in time keeps the office, under the same number',
      guarantees: ['I2'],
      ...need(leadership),
      async run(stage) {
        const [one, other] = [leadershipOf(stage.engine), leadershipOf(await stage.other())]
        const first = await one.campaign(OFFICE, 'a', stage.leaseMs)
        for (let turn = 0; turn < 4; turn += 1) {
          await stage.harness.advance(stage.leaseMs * 0.6)
          const term = await one.campaign(OFFICE, 'a', stage.leaseMs)
          assert.deepEqual([term.holder, term.number], ['a', first.number])
          assert.equal((await other.campaign(OFFICE, 'b', stage.leaseMs)).holder, 'a')
        }
      },
    },
    {
      name: 'a holder that resigns frees the office at once, and nobody else can',
      guarantees: ['I6'],
      ...need(leadership),
      async run(stage) {
        const [one, other] = [leadershipOf(stage.engine), leadershipOf(await stage.other())]
        const first = await one.campaign(OFFICE, 'a', stage.leaseMs)
        await other.resign(OFFICE, 'b')
        assert.equal((await one.leader(OFFICE))?.holder, 'a')
        await one.resign(OFFICE, 'a')
        assert.equal(await other.leader(OFFICE), null)
        const next = await other.campaign(OFFICE, 'b', stage.leaseMs)
        assert.equal(next.holder, 'b')
        assert.ok(next.number > first.number, 'the number did not grow')
      },
    },
    {
      name: 'offices of different names are different offices',
      guarantees: ['I2'],
      ...need(leadership),
      async run(stage) {
        const offices = leadershipOf(stage.engine)
        await offices.campaign('one', 'a', stage.leaseMs)
        assert.equal((await offices.campaign('other', 'b', stage.leaseMs)).holder, 'b')
        assert.equal((await offices.leader('one'))?.holder, 'a')
      },
    },
  ],
}
