import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { MemoryEngine } from '../../src/engines/memory/engine.ts'
import { MemoryStore } from '../../src/engines/memory/store.ts'
import { systemClock } from '../../src/time/clock.ts'
import { playHere } from '../../test/proof/play-here.ts'
import type { AskedJob, Entry, GivenLease } from '../history/entry.ts'
import { generate } from '../workload/generate.ts'
import { check, type Facts } from './check.ts'

const SEED = 3

/** Each is made from a run that was recorded, and differs from it in one place. */
const changes: Readonly<Record<string, { rule: string; sentence: RegExp; change: (facts: Facts) => Facts }>> = {
  'completed jobs are missing': {
    rule: 'I1',
    sentence: /was acknowledged and is gone/,
    change: ({ final, ...rest }) => {
      const jobs = new Map([...final.jobs].filter(([, { state, type }]) => state !== 'completed' || type !== 'plain'))
      return { ...rest, final: { ...final, jobs } }
    },
  },
  'a result is another': {
    rule: 'I3',
    sentence: /the stored result/,
    change: ({ final, ...rest }) => {
      const [done] = [...final.jobs.values()].filter(({ state }) => state === 'completed')
      assert.ok(done)
      return { ...rest, final: { ...final, jobs: new Map([...final.jobs, [done.id, { ...done, result: 'other' }]]) } }
    },
  },
  'a receipt was never given for what runs': {
    rule: 'I1',
    sentence: /was never enqueued/,
    change: (facts) =>
      withEntries(facts, (entry) => (entry.what === 'enqueue' ? { ...entry, jobs: entry.jobs.slice(1) } : entry)),
  },
  'payloads are mixed up': {
    rule: 'carried',
    sentence: /another payload/,
    change: (facts) => withLeases(facts, (lease) => ({ ...lease, digest: 'mixed-up' })),
  },
  'attempts are fewer than starts': {
    rule: 'I5',
    sentence: /and it has 1/,
    change: (facts) => withAsked(facts, (job) => ({ ...job, attempts: 1 })),
  },
  'tokens are all the same': {
    rule: 'I4',
    sentence: /two leases of job .* have the token same/,
    change: (facts) => withLeases(facts, (lease) => ({ ...lease, token: 'same' })),
  },
  'the audit is empty': {
    rule: 'I9',
    sentence: /the audit has 0 entries of/,
    change: ({ final, ...rest }) => ({ ...rest, final: { ...final, audit: [] } }),
  },
  'a worker never exits': {
    rule: 'I8',
    sentence: /was asked to stop and never exited/,
    change: (facts) =>
      withEntries(facts, (entry) => (entry.what === 'process' && entry.event === 'exited' ? null : entry)),
  },
  'it never finishes': {
    rule: 'I6',
    sentence: /not everything had finished/,
    change: (facts) => withEntries(facts, (entry) => (entry.what === 'finished' ? null : entry)),
  },
}

function withEntries({ history, ...rest }: Facts, change: (entry: Entry) => Entry | null): Facts {
  return { ...rest, history: history.flatMap((entry) => change(entry) ?? []) }
}

function withLeases(facts: Facts, change: (lease: GivenLease) => GivenLease): Facts {
  return withEntries(facts, (entry) =>
    entry.what === 'claimed' ? { ...entry, leases: entry.leases.map(change) } : entry,
  )
}

function withAsked(facts: Facts, change: (job: AskedJob) => AskedJob): Facts {
  return withEntries(facts, (entry) => (entry.what === 'enqueue' ? { ...entry, jobs: entry.jobs.map(change) } : entry))
}

describe(`a run on the memory engine that was recorded (seed ${SEED})`, () => {
  let facts: Facts
  before(async () => {
    const store = new MemoryStore({ finishedMax: Number.POSITIVE_INFINITY })
    const played = await playHere({
      openEngine: async () => new MemoryEngine({ store }),
      clock: systemClock,
      program: (abilities) => generate({ seed: SEED, abilities, jobs: 250, clients: 2, density: 3 }),
      boundMs: 30_000,
    })
    facts = played.facts
  })

  test('what happened is recorded, and the checker accepts it', () => {
    const { violations, tally } = check(facts)
    assert.deepEqual(violations, [])
    assert.ok(tally.jobs > 200 && tally.repeats > 10 && tally.dead > 5, JSON.stringify(tally))
    const recorded = new Set<string>(facts.history.map(({ what }) => what))
    for (const what of [
      'enqueued',
      'claimed',
      'settled',
      'begin',
      'end',
      'desk-done',
      'saved',
      'cancelled',
      'reported',
    ]) {
      assert.ok(recorded.has(what), `nothing was recorded as ${what}`)
    }
  })

  for (const [name, { rule, sentence, change }] of Object.entries(changes)) {
    test(`${name}: it is refused`, () => {
      const { violations } = check(change(facts))
      assert.ok(
        violations.some((violation) => violation.rule === rule && sentence.test(violation.sentence)),
        JSON.stringify(violations.slice(0, 5)),
      )
    })
  }
})
