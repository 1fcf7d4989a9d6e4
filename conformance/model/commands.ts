/** What may happen to a queue, in any order: each command does the same on both sides and compares everything. */
import fc from 'fast-check'
import type { Lease, Outcome } from '../../src/engine/outcome.ts'
import { UnknownJobError } from '../../src/errors.ts'
import type { NewJob } from '../../src/job/job.ts'
import { newJobId } from '../../src/job/job.ts'
import { never } from '../stage.ts'
import { BOUNDED_TYPE, type Held, LEASE_MS, leased, lostOf, REAPER, TYPES, UNIT_MS, type World } from './world.ts'

/** fast-check wants a model of its own; the memory engine inside the world is ours. */
type Command = fc.AsyncCommand<object, World>

function command(text: string, act: (world: World) => Promise<void>): Command {
  return {
    check: () => true,
    run: async (_model, world) => {
      await act(world)
      await world.compare()
      if (world.order !== 'exact') await world.advance(1)
    },
    toString: () => text,
  }
}

const show = (name: string, value: unknown): string => `${name}(${JSON.stringify(value)})`

/** Picks from the newest: recent jobs and leases are the interesting ones. */
function pick<Item>(items: readonly Item[], index: number): Item | undefined {
  return items.at(-1 - (index % Math.max(1, items.length)))
}

/** Null `nulls` times as often as a value. */
const seldom = <Value>(arbitrary: fc.Arbitrary<Value>, nulls: number): fc.Arbitrary<Value | null> =>
  fc.oneof({ weight: nulls, arbitrary: fc.constant(null) }, { weight: 1, arbitrary })

const wanted = fc.record({
  type: fc.constantFrom(...TYPES),
  priority: fc.integer({ min: 1, max: 3 }),
  delayMs: fc.constantFrom(0, 0, 0, 5 * UNIT_MS, 60 * UNIT_MS),
  key: seldom(fc.constantFrom('k1', 'k2'), 2),
  latest: seldom(fc.record({ key: fc.constantFrom('l1', 'l2'), seq: seldom(fc.integer({ min: 1, max: 6 }), 2) }), 2),
  attempts: fc.integer({ min: 1, max: 3 }),
  /** Earlier jobs that come first; some were never stored, and then the whole batch is refused. */
  after: seldom(
    fc.record({
      picks: fc.array(fc.nat(5), { minLength: 1, maxLength: 3 }),
      ifDead: fc.constantFrom('wait', 'run', 'die'),
    }),
    2,
  ),
  /** Sometimes the id of an earlier job: a repeated enqueue. */
  again: seldom(fc.nat(10), 12),
})

/** Versions come alone: see below. */
const batch = fc
  .array(wanted, { minLength: 1, maxLength: 3 })
  .map((jobs) => (jobs.some(({ latest }) => latest !== null) ? jobs.slice(0, 1) : jobs))

const enqueue = batch.map((jobs) =>
  command(show('enqueue', jobs), async (world) => {
    const prepared = jobs.map(({ again, key, latest, after, ...fields }): NewJob => {
      const isTied = world.order !== 'untied'
      const first = after?.picks.flatMap((index) => pick(world.ids, index) ?? []) ?? []
      const repeated = again === null ? undefined : pick(world.ids, again)
      const id = repeated ?? newJobId(world.clock.nowMs())
      if (repeated === undefined) world.ids.push(id)
      const payload = JSON.stringify(world.ids.length)
      // The core refuses a job with both keys.
      const keys = isTied ? { key: latest === null ? key : null, latest } : { key, latest: null }
      return {
        ...fields,
        ...keys,
        id,
        payload,
        payloadVersion: 1,
        runAtMs: null,
        tenant: null,
        options: null,
        // The core refuses a version that has to wait for others.
        after:
          after === null || !isTied || first.length === 0 || latest !== null
            ? null
            : { ids: unique(first), ifDead: after.ifDead },
      }
    })
    // Where a version that is due sooner than the one it replaces stands among those of its millisecond is not
    // promised, so it has its millisecond for itself.
    await world.advance(1)
    await world.both(({ engine }) => engine.enqueue(prepared).catch(codeOf))
    await world.advance(1)
  }),
)

const unique = (ids: readonly string[]): readonly string[] => [...new Set(ids)]

const codeOf = (error: unknown): string => {
  if (error instanceof UnknownJobError) return error.code
  throw error
}

const bounds = seldom(fc.record({ a: fc.integer({ min: 0, max: 2 }) }), 3)

const claim = fc
  .tuple(fc.nat(1), fc.integer({ min: 1, max: 4 }), bounds)
  .map(([consumer, max, perType]) =>
    command(show('claim', { consumer, max, perType }), (world) =>
      take(world, consumer, { max, ...(perType !== null && { perType }) }),
    ),
  )

/** All of them: in which order expired leases come is not promised. */
const reap = fc.constant(command('reap()', (world) => take(world, REAPER, { max: 100, from: 'expired' })))

async function take(
  world: World,
  consumer: number,
  request: { readonly max: number; readonly from?: 'expired'; readonly perType?: { readonly a: number } },
): Promise<void> {
  const isSorted = request.from === 'expired' || world.order === 'any'
  const asked = isSorted ? { max: 100, ...(request.from !== undefined && { from: request.from }) } : request
  const [model, tried] = await world.both(
    async ({ consumers }) => {
      const leases = (await consumers[consumer]?.claim({ ...asked, waitMs: 0, signal: never })) ?? []
      return isSorted ? [...leases].sort((one, two) => (one.job.id < two.job.id ? -1 : 1)) : leases
    },
    (leases) => leases.map(leased),
  )
  for (const [index, lease] of model.entries()) {
    const twin = tried[index]
    if (twin !== undefined) world.held.push({ consumer, leases: [lease, twin] })
  }
}

/** The core never asks for a retry when no attempt is left. */
function admissible({ attempt, job }: Lease, outcome: Outcome): Outcome {
  return outcome.kind === 'retry' && attempt >= job.attempts ? { kind: 'dead', error: outcome.error } : outcome
}

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.constant<Outcome>({ kind: 'complete', result: '{"ok":true}', durationMs: 3 }),
  fc.constantFrom(0, 0, 10 * UNIT_MS, 70 * UNIT_MS).map((delayMs): Outcome => {
    return { kind: 'retry', delayMs, error: { name: 'Error', code: 'E', message: 'again', stack: null } }
  }),
  fc.constant<Outcome>({ kind: 'complete', result: '1', durationMs: 3, keep: 0 }),
  fc.constant<Outcome>({ kind: 'dead', error: { name: 'Error', code: null, message: 'gone', stack: null }, keep: 0 }),
  fc.constant<Outcome>({ kind: 'dead', error: { name: 'Error', code: null, message: 'dead', stack: 'at x' } }),
  fc.constantFrom(0, 0, 30 * UNIT_MS).map((delayMs): Outcome => ({ kind: 'release', delayMs, reason: 'model' })),
)

/**
 * Where the newest are those that arrived last, two of each way to finish stay of one type. Of the other type those that
 * are told to go do; where ties of removed jobs are told one by one, not all at the end, only jobs without ties are.
 */
function bounded(world: World, { job }: Lease, of: Outcome): Outcome {
  if (of.kind !== 'complete' && of.kind !== 'dead') return of
  const { keep: _, ...rest } = of
  if (job.type === BOUNDED_TYPE) return world.order === 'exact' ? { ...rest, keep: 2 } : rest
  return world.order === 'any' ? rest : of
}

/** Mostly the leases that were handed out last; sometimes older ones, whose holders are late. */
const picks = fc.oneof({ weight: 4, arbitrary: fc.nat(3) }, { weight: 1, arbitrary: fc.nat(40) })

const settle = fc.array(fc.tuple(picks, outcome), { minLength: 1, maxLength: 4 }).map((wishes) =>
  command(show('settle', wishes), async (world) => {
    const chosen = new Map<Held, Outcome>()
    for (const [index, of] of wishes) {
      const held = pick(world.held, index)
      // Which of two outcomes for one lease in one call counts is nobody's promise.
      if (held !== undefined && !chosen.has(held))
        chosen.set(held, bounded(world, held.leases[0], admissible(held.leases[0], of)))
    }
    // One call per consumer, as their workers would make it.
    for (const consumer of new Set([...chosen.keys()].map((held) => held.consumer))) {
      const mine = [...chosen].filter(([held]) => held.consumer === consumer)
      if (world.order !== 'exact')
        mine.sort(([one], [other]) => (one.leases[0].job.id < other.leases[0].job.id ? -1 : 1))
      await world.both(
        async ({ consumers }, which) =>
          (await consumers[consumer]?.settle(mine.map(([held, of]) => ({ lease: held.leases[which], outcome: of })))) ??
          [],
        lostOf,
      )
    }
  }),
)

const onHeld = (name: string, act: (world: World, held: Held) => Promise<unknown>): fc.Arbitrary<Command> =>
  picks.map((index) =>
    command(show(name, index), async (world) => {
      const held = pick(world.held, index)
      if (held !== undefined) await act(world, held)
    }),
  )

const renew = onHeld('renew', (world, { consumer, leases }) =>
  world.both(
    async ({ consumers }, which) => (await consumers[consumer]?.renew([leases[which]], LEASE_MS)) ?? [],
    lostOf,
  ),
)

const report = onHeld('report', (world, { consumer, leases }) =>
  world.both(
    ({ consumers }, which) => consumers[consumer]?.report(leases[which], '{"half":true}') ?? Promise.resolve(false),
  ),
)

const by = { who: 'model', reason: 'random' }

const onJob = (name: string, act: (world: World, id: string) => Promise<unknown>): fc.Arbitrary<Command> =>
  fc.nat(12).map((index) =>
    command(show(name, index), async (world) => {
      const id = pick(world.ids, index)
      if (id !== undefined) await act(world, id)
    }),
  )

const cancel = onJob('cancel', (world, id) =>
  world.both(({ engine }) => engine.controls?.cancel(id, by) ?? Promise.resolve(false)),
)

const requeue = onJob('requeue', (world, id) =>
  world.both(({ engine }) => engine.deadLetters?.requeue([id], by) ?? Promise.resolve([false])),
)

const discard = onJob('discard', (world, id) =>
  world.both(({ engine }) => engine.deadLetters?.discard([id], by) ?? Promise.resolve([false])),
)

const undiscard = onJob('undiscard', (world, id) =>
  world.both(({ engine }) => engine.deadLetters?.undiscard([id], by) ?? Promise.resolve([false])),
)

const purge = onJob('purge', (world, id) =>
  world.both(({ engine }) => engine.deadLetters?.remove([id], by) ?? Promise.resolve([false])),
)

const advance = fc
  .constantFrom(1, 4 * UNIT_MS, 15 * UNIT_MS, LEASE_MS, LEASE_MS + 1, 100 * UNIT_MS)
  .map((ms) => command(show('advance', ms), (world) => world.advance(ms)))

/** Weighted so that jobs are enqueued, claimed and settled most of the time. */
export const anyCommand: fc.Arbitrary<Command>[] = [
  enqueue,
  enqueue,
  enqueue,
  enqueue,
  claim,
  claim,
  claim,
  settle,
  settle,
  settle,
  advance,
  advance,
  reap,
  renew,
  report,
  cancel,
  requeue,
  discard,
  undiscard,
  purge,
]
