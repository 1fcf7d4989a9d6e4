import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { mutants } from '../../conformance/mutants/index.ts'
import { timingMutants } from '../../conformance/mutants/timing.ts'
import { alteredStore } from './altered-store.ts'
import { generatePlan } from './generate.ts'
import { shrink, sizeOf } from './shrink.ts'
import { simulate } from './simulate.ts'
import { type CreateStore, memoryStore, sqliteStore } from './stores.ts'

const SEEDS: Readonly<Record<string, readonly [create: CreateStore, seeds: number]>> = {
  memory: [memoryStore, 120],
  sqlite: [sqliteStore, 30],
}

for (const [engine, [create, seeds]] of Object.entries(SEEDS)) {
  describe(`a simulation on ${engine}`, () => {
    it('is the same when it is played again, by its seed and by its choices', async () => {
      for (const seed of [3, 41, 62]) {
        const first = await simulate({ create, plan: seed })
        const again = await simulate({ create, plan: seed })
        const chosen = await simulate({ create, plan: first.plan })
        assert.equal(JSON.stringify(again.history), JSON.stringify(first.history), `seed ${seed}`)
        assert.equal(JSON.stringify(chosen.history), JSON.stringify(first.history), `the choices of seed ${seed}`)
      }
    })

    it(`breaks no rule with the first ${seeds} seeds`, async () => {
      for (let seed = 1; seed <= seeds; seed += 1) {
        const { verdict, history } = await simulate({ create, plan: seed })
        assert.deepEqual(verdict.violations, [], `npm run simulate -- --engine ${engine} --from ${seed} --seeds 1`)
        assert.ok(history.some(({ what }) => what === 'finished'))
      }
    })
  })
}

describe('a simulation of a wrong engine', () => {
  const wrong = [...mutants, ...timingMutants]
  /** With a seed that finds it; `npm run simulate -- --mutants` tries them all. */
  const found: readonly (readonly [flaw: string, seed: number])[] = [
    ['settle looks at the job and not at the token', 24],
    ['a job is handed to two holders', 1],
    ['a retry loses its delay', 1],
    ['the delay of a retry counts from the claim and not from the settle', 1],
    ['a release gives the start back to the limit of its type', 30],
    ['a late renewal under an older token extends the lease of the next holder', 39],
    ['the reaper takes a lease in its last millisecond', 673],
    ['a tick is enqueued twice when two keepers save it at once', 235],
    ['slots are ignored', 20],
    ['a release frees two slots', 38],
  ]
  for (const [flaw, seed] of found) {
    it(`finds that ${flaw}`, async () => {
      const mutant = wrong.find((each) => each.flaw === flaw)
      assert.ok(mutant !== undefined)
      const { verdict } = await simulate({ create: alteredStore(memoryStore, mutant.alter), plan: seed })
      assert.notDeepEqual(verdict.violations, [])
    })
  }

  it('is made small, and still breaks the same rule when it is played again', async () => {
    const mutant = timingMutants.find(({ flaw }) => flaw.startsWith('the delay of a retry'))
    assert.ok(mutant !== undefined)
    const create = alteredStore(memoryStore, mutant.alter)
    const failed = await simulate({ create, plan: 1 })
    const small = await shrink({ create, failed, runs: 120 })
    assert.ok(sizeOf(small.plan) < sizeOf(failed.plan) / 3, `${sizeOf(small.plan)} of ${sizeOf(failed.plan)}`)
    const again = await simulate({ create, plan: small.plan })
    assert.equal(again.verdict.violations[0]?.rule, failed.verdict.violations[0]?.rule)
  })
})

it('a plan without workers is refused', async () => {
  await assert.rejects(simulate({ create: memoryStore, plan: { ...generatePlan(1), workers: 0 } }), {
    code: 'ERR_OPTION_INVALID',
  })
})
