/** Ageing on every engine that supports it, compared with the pure function of the core. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { effectiveRank } from '../../src/job/ageing.ts'
import type { NewJob } from '../../src/job/job.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { memoryHarness } from '../engines/memory.ts'
import { postgresHarness } from '../engines/postgres.ts'
import { sqliteHarness } from '../engines/sqlite.ts'
import type { Harness } from '../harness.ts'
import { Stage } from '../stage.ts'

/** Repeat a run with MODEL_SEED=<the seed it printed>; look longer with MODEL_RUNS. */
const seed = Number(process.env.MODEL_SEED ?? 20_260_101)
const numRuns = Number(process.env.MODEL_RUNS ?? 120)
const AGEING_MS = 600_000
const LEASE_MS = 1_000 * AGEING_MS
const TYPES = ['a', 'b', 'c'] as const
const LIMITED = { max: 3, perMs: AGEING_MS }

/** Multiples of a third of the interval, and a millisecond beside them: many ties, and every boundary. */
const offset = fc
  .tuple(fc.integer({ min: -1, max: 33 }), fc.constantFrom(-1, 0, 0, 1))
  .map(([thirds, ms]) => (thirds * AGEING_MS) / 3 + ms)

const job = fc.record({
  type: fc.constantFrom(...TYPES),
  priority: fc.integer({ min: 1, max: 10 }),
  /** How long it has been due when the claims begin; negative: due later. */
  waitedMs: offset,
})

const claim = fc.record({
  max: fc.integer({ min: 1, max: 8 }),
  perType: fc.option(fc.record({ b: fc.integer({ min: 0, max: 2 }) }), { nil: undefined }),
  advanceMs: fc.constantFrom(0, 0, 1, AGEING_MS / 3, AGEING_MS),
})

const trial = fc.record({
  jobs: fc.array(job, { minLength: 1, maxLength: 40, size: 'max' }),
  claims: fc.array(claim, { minLength: 1, maxLength: 8 }),
  isLimited: fc.boolean(),
})
type Trial = typeof trial extends fc.Arbitrary<infer Value> ? Value : never
type Claim = Trial['claims'][number]

/** What a claim must hand out, and the ids in their order of arrival. */
class Reference {
  #waiting: readonly NewJob[]
  readonly #startsMs: number[] = []

  constructor(jobs: readonly NewJob[]) {
    this.#waiting = jobs
  }

  take({ max, perType }: Claim, nowMs: number, isLimited: boolean): readonly string[] {
    const recent = this.#startsMs.filter((atMs) => atMs > nowMs - LIMITED.perMs).length
    const left = new Map<string, number>([['b', perType?.b ?? max]])
    if (isLimited) left.set('a', LIMITED.max - recent)
    const rankOf = ({ priority, runAtMs }: NewJob): number => effectiveRank(priority, nowMs - (runAtMs ?? 0), AGEING_MS)
    const taken = this.#waiting
      .filter(({ runAtMs }) => (runAtMs ?? 0) <= nowMs)
      // Stable, so jobs of one rank and due time stay in order of arrival.
      .toSorted((one, other) => rankOf(one) - rankOf(other) || (one.runAtMs ?? 0) - (other.runAtMs ?? 0))
      .filter(({ type }) => {
        const room = left.get(type) ?? max
        left.set(type, room - 1)
        return room > 0
      })
      .slice(0, max)
    this.#startsMs.push(...taken.filter(({ type }) => type === 'a').map(() => nowMs))
    this.#waiting = this.#waiting.filter((one) => !taken.includes(one))
    return taken.map(({ id }) => id)
  }
}

async function compare(harness: Harness, { jobs, claims, isLimited }: Trial): Promise<void> {
  const stage = new Stage(harness, { type: 'a', leaseMs: LEASE_MS, graceMs: 0 })
  const stored = jobs.map(({ waitedMs, ...fields }) => stage.job({ ...fields, runAtMs: stage.nowMs - waitedMs }))
  await stage.engine.enqueue(stored)
  const types = TYPES.map((type) => ({
    type,
    leaseMs: LEASE_MS,
    ...(isLimited && type === 'a' && { limit: LIMITED }),
  }))
  const consumer = await stage.consume({ types, ageingMs: AGEING_MS })
  const reference = new Reference(stored)
  for (const wanted of claims) {
    const { max, perType, advanceMs } = wanted
    await harness.advance(advanceMs)
    const expected = reference.take(wanted, stage.nowMs, isLimited)
    const leases = await stage.take(consumer, max, perType === undefined ? {} : { perType })
    assert.deepEqual(
      leases.map((lease) => lease.job.id),
      expected,
    )
  }
}

const SUBJECTS = [
  { name: 'memory', create: memoryHarness, runs: numRuns },
  // Each run creates its own store.
  { name: 'sqlite', create: sqliteHarness, runs: Math.ceil(numRuns / 2) },
  { name: 'postgres', create: postgresHarness, runs: Math.ceil(numRuns / 5) },
] as const

for (const { name, create, runs } of SUBJECTS) {
  // X119
  test(`${name} claims in the order of effective rank, due time and arrival`, async (context) => {
    context.diagnostic(`MODEL_SEED=${seed} MODEL_RUNS=${runs}`)
    await fc.assert(
      fc.asyncProperty(trial, async (one) => {
        const harness = await create(new TestClock())
        try {
          await compare(harness, one)
        } finally {
          await harness.destroy()
        }
      }),
      { seed, numRuns: runs },
    )
  })
}
