/** Two engines in one time: the memory engine as the model, another one as the thing that is tried. */

import assert from 'node:assert/strict'
import type { Consumer, Engine } from '../../src/engine/engine.ts'
import type { Lease, NotApplied } from '../../src/engine/outcome.ts'
import type { JobEvent, JobView } from '../../src/job/job.ts'
import { isEnded } from '../../src/job/states.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import type { Harness } from '../harness.ts'

export const TYPES = ['a', 'b'] as const
/** The type of which a number of finished jobs stays. */
export const BOUNDED_TYPE = 'b'
/**
 * All times are multiples of ten seconds, or a millisecond: where leases end by the server's own time, the time that the
 * test itself takes must not decide.
 */
export const UNIT_MS = 10_000
export const LEASE_MS = 40 * UNIT_MS
/** For the second consumer, where the tried engine supports ageing: a job gains a rank while others are worked on. */
const AGEING_MS = 10 * UNIT_MS

/** One engine with two consumers, each with a view of its own, and a reaper. */
export interface Side {
  readonly engine: Engine
  readonly consumers: readonly Consumer[]
}

/** A lease as both sides gave it. Tokens differ, everything else must not. */
export interface Held {
  /** Which consumer holds it; the last one is the reaper. */
  readonly consumer: number
  readonly leases: readonly [model: Lease, tried: Lease]
}

/**
 * What of the order of jobs is compared: all of it; all but which of two goes first that fell due in one millisecond, and
 * without jobs that wait for others; or nothing.
 */
export type Order = 'exact' | 'untied' | 'any'

export class World {
  readonly clock: TestClock
  readonly ids: string[] = []
  /** Every lease that was ever handed out, oldest first: late holders go on trying. */
  readonly held: Held[] = []
  readonly order: Order
  readonly #harnesses: readonly Harness[]
  readonly #sides: readonly [model: Side, tried: Side]

  private constructor(
    { clock, order }: Pick<World, 'clock' | 'order'>,
    harnesses: readonly Harness[],
    sides: readonly [Side, Side],
  ) {
    this.clock = clock
    this.order = order
    this.#harnesses = harnesses
    this.#sides = sides
  }

  static async create(createModel: CreateIn, createTried: CreateIn, order: Order): Promise<World> {
    const clock = new TestClock()
    const [model, tried] = [await createModel(clock), await createTried(clock)]
    const ageingMs = tried.engine.capabilities.order === 'ageing-priority' ? AGEING_MS : null
    const sides = [await sideOf(model, ageingMs), await sideOf(tried, ageingMs)] as const
    return new World({ clock, order }, [model, tried], sides)
  }

  /** Does the same on both sides and insists that `read` sees the same. Returns what each side answered. */
  async both<Answer>(
    act: (side: Side, which: 0 | 1) => Promise<Answer>,
    read: (answer: Answer) => unknown = (answer) => answer,
  ): Promise<readonly [Answer, Answer]> {
    const model = await act(this.#sides[0], 0)
    const tried = await act(this.#sides[1], 1)
    assert.deepEqual(read(tried), read(model))
    return [model, tried]
  }

  /** For both sides: the memory engine has the clock, and the other may have to be told. */
  async advance(ms: number): Promise<void> {
    await this.#harnesses[1]?.advance(ms)
  }

  /** Everything that can be seen from outside is the same on both sides. */
  async compare(): Promise<void> {
    await this.both(({ engine }) => engine.counts(), countsOf)
    await this.both(
      ({ engine }) => engine.deadLetters?.list({ limit: 100 }) ?? Promise.resolve([]),
      // Which of two that died in one millisecond is newer is not promised.
      (letters) => letters.map(({ job, error }) => [job.id, error]).sort(),
    )
    await this.both(
      async ({ engine }) => (await engine.inspector?.list({ limit: 1_000 })) ?? [],
      // A version that took the place of an older one may be listed there.
      (views) =>
        views
          .toSorted((a, b) => (a.id < b.id ? 1 : -1))
          .map((view) => viewed(this.order === 'exact' ? view : withRoundLease(view, this.clock.nowMs()))),
    )
    for (const id of this.ids) {
      await this.both(async ({ engine }) => (await engine.inspector?.history(id)) ?? [], told)
    }
  }

  async destroy(): Promise<void> {
    for (const harness of this.#harnesses) await harness.destroy()
  }
}

export type CreateIn = (clock: TestClock) => Promise<Harness>

async function sideOf(harness: Harness, ageingMs: number | null): Promise<Side> {
  const rival = await harness.other()
  const types = TYPES.map((type) => ({ type, leaseMs: LEASE_MS }))
  const consumers = [
    await harness.engine.consume({ types, worker: 'model:1:one' }),
    await rival.consume({ types, worker: 'model:1:two', ...(ageingMs !== null && { ageingMs }) }),
    // A reaper with types: how long the lease of one without them is, each engine chooses itself.
    await rival.consume({ types, worker: 'model:1:reaper' }),
  ]
  return { engine: harness.engine, consumers }
}

export const REAPER = 2

/** What must be the same of a lease: all but its token. */
/** The job by its values: an engine may make it of a class. */
export const leased = ({ job, attempt, expiresAtMs }: Lease): unknown => ({ job: { ...job }, attempt, expiresAtMs })

/** Which leases are lost. Why a lease is gone that was given up long ago, engines remember differently. */
export const lostOf = (lost: readonly NotApplied[]): unknown =>
  lost.map(({ lease }) => `${lease.job.id} ${lease.attempt}`).sort()

/** Types without jobs may be left out or be all zeros. */
function countsOf(counts: Awaited<ReturnType<Engine['counts']>>): unknown {
  const zero = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }
  return TYPES.map((type) => ({ ...zero, ...counts[type] }))
}

/** Where a lease ends by the server's own time, no other clock tells its end to the millisecond, and then it is gone. */
function withRoundLease({ leaseUntilMs, ...view }: JobView, nowMs: number): JobView {
  const isOver = leaseUntilMs === null || leaseUntilMs <= nowMs
  return { ...view, leaseUntilMs: isOver ? null : Math.round(leaseUntilMs / UNIT_MS) }
}

/**
 * When a row was last touched, what stands as the error of a job that ended without one, and whether a start counts
 * that was given back by a superseded job, are the engine's own affair.
 */
function viewed({ updatedAtMs: _, error, attempt, ...view }: JobView): unknown {
  if (!isEnded(view.state)) return { ...view, error, attempt }
  return view.state === 'superseded' ? view : { ...view, attempt }
}

/** How a release is told that made way for a newer version, and which attempt stands beside it, engines differ in. */
const told = (history: readonly JobEvent[]): unknown =>
  history.map(({ name }) => name).filter((name) => name !== 'released')
