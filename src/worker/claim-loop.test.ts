import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { leaseOf } from '../../test/fixtures/lease.ts'
import { systemClock } from '../time/clock.ts'
import { ClaimLoop } from './claim-loop.ts'

/** What a loop with room for so many says until its second claim, of a store that had two. */
async function watched(isRemote: boolean, room: number): Promise<readonly string[]> {
  const said: string[] = []
  const loop = new ClaimLoop({
    clock: systemClock,
    consumer: {
      isRemote,
      async claim({ max }) {
        said.push(`asks for ${max}`)
        return said.length === 1 ? [leaseOf('a'), leaseOf('b')] : []
      },
    },
    pollMs: 1_000,
    plan: () => ({ max: room, perType: undefined }),
    isOutdated: () => false,
    onLeases: (leases) => said.push(`takes ${leases.length}`),
    onError: (error) => assert.fail(String(error)),
  })
  loop.start()
  while (said.length < 3) await turn()
  await loop.stop()
  return said.slice(0, 3)
}

test('a remote engine fetches the next jobs while those it brought run', async () => {
  assert.deepEqual(await watched(true, 2), ['asks for 2', 'asks for 2', 'takes 2'])
})

/** A loop whose consumer sends a claim some turns after it was asked, as a pool of connections does. */
function slowlySent(said: string[], onLeases: (leases: readonly unknown[]) => void): ClaimLoop {
  return new ClaimLoop({
    clock: systemClock,
    consumer: {
      isRemote: true,
      async claim({ signal }) {
        for (let step = 0; step < 5; step += 1) await new Promise<void>((resolve) => process.nextTick(resolve))
        said.push(signal.aborted ? 'sends nothing' : 'sends')
        if (said.length === 1) return [leaseOf('a'), leaseOf('b')]
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        return []
      },
    },
    pollMs: 1_000,
    plan: () => ({ max: 2, perType: undefined }),
    isOutdated: () => false,
    onLeases,
    onError: (error) => assert.fail(String(error)),
  })
}

test('the next claim of a remote engine is sent before handlers can block the event loop', async () => {
  const said: string[] = []
  const taken = Promise.withResolvers<void>()
  const loop = slowlySent(said, (leases) => {
    said.push(`takes ${leases.length}`)
    taken.resolve()
  })
  loop.start()
  await taken.promise
  await loop.stop()
  assert.deepEqual(said, ['sends', 'sends', 'takes 2'])
})

test('jobs that are in hand when the loop is stopped are handed over before it has stopped', async () => {
  const said: string[] = []
  const loop = slowlySent(said, (leases) => said.push(`takes ${leases.length}`))
  loop.start()
  while (said.length === 0) await new Promise<void>((resolve) => process.nextTick(resolve))
  await loop.stop()
  assert.ok(said.includes('takes 2'), said.join(', '))
})

test('a job that ends while others are in hand makes no room for more than its own', async () => {
  const plans: number[] = []
  const taken = Promise.withResolvers<void>()
  const loop = new ClaimLoop({
    clock: systemClock,
    consumer: { isRemote: true, claim: async () => [leaseOf('a'), leaseOf('b')] },
    pollMs: 1_000,
    plan: (inHand) => {
      plans.push(inHand)
      // A job ends in the turn in which these two arrive.
      if (plans.length === 2) process.nextTick(() => loop.pump())
      return inHand === 0 && plans.length === 1 ? { max: 2, perType: undefined } : null
    },
    isOutdated: () => false,
    onLeases: () => taken.resolve(),
    onError: (error) => assert.fail(String(error)),
  })
  loop.start()
  await taken.promise
  await loop.stop()
  assert.deepEqual(plans.slice(0, 3), [0, 2, 2])
})

test('a remote engine that had fewer jobs than were asked for is asked again when these have started', async () => {
  assert.deepEqual(await watched(true, 5), ['asks for 5', 'takes 2', 'asks for 5'])
})

test('an in-process engine is asked again after the handlers, together with their settles', async () => {
  assert.deepEqual(await watched(false, 2), ['asks for 2', 'takes 2', 'asks for 2'])
})

test('a consumer that looks by itself is asked less often, unless the user says how often', async () => {
  const waits = async (looksAgain: boolean, pollMs: number | null): Promise<number> => {
    const asked = Promise.withResolvers<number>()
    const loop = new ClaimLoop({
      clock: { ...systemClock, monotonicMs: () => 0 },
      consumer: {
        looksAgain,
        claim: async ({ waitMs }) => {
          asked.resolve(waitMs)
          return []
        },
      },
      pollMs,
      plan: () => ({ max: 1, perType: undefined }),
      isOutdated: () => false,
      onLeases: () => {},
      onError: (error) => assert.fail(String(error)),
    })
    loop.start()
    const waitMs = await asked.promise
    await loop.stop()
    return waitMs
  }
  assert.deepEqual([await waits(false, null), await waits(true, null), await waits(true, 200)], [1_000, 30_000, 200])
})

/** How long each claim may wait, with how many leases asked for or in hand it was planned, in the order in which they are sent. */
async function ahead(claimsAhead: boolean, brings: readonly number[]): Promise<readonly string[]> {
  const said: string[] = []
  const answers: (() => void)[] = []
  const loop = new ClaimLoop({
    clock: { ...systemClock, monotonicMs: () => 0 },
    consumer: {
      isRemote: true,
      claimsAhead,
      async claim({ waitMs, signal }) {
        const leases = Array.from({ length: brings[said.length - 1] ?? 0 }, (_, nth) =>
          leaseOf(`${said.length} ${nth}`),
        )
        said[said.length - 1] += waitMs > 0 ? ', waits' : ', does not wait'
        await new Promise<void>((resolve) => {
          answers.push(resolve)
          signal.addEventListener('abort', () => resolve(), { once: true })
        })
        return leases
      },
    },
    pollMs: 1_000,
    plan: (taken) => {
      said.push(`beside ${taken}`)
      return { max: 20, perType: undefined }
    },
    isOutdated: () => false,
    onLeases: () => {},
    onError: (error) => assert.fail(String(error)),
  })
  loop.start()
  for (let nth = 0; nth < brings.length; nth += 1) {
    answers[nth]?.()
    for (let turns = 0; turns < 5; turns += 1) await turn()
  }
  await loop.stop()
  return said
}

test('while many jobs wait, a second claim stands behind the first, and only one waits for jobs to come', async () => {
  // The first brings all it asked for, the second few, the third nothing.
  assert.deepEqual(await ahead(true, [20, 3, 0]), [
    'beside 0, waits',
    'beside 20, waits',
    'beside 20, does not wait',
    'beside 0, waits',
  ])
})

test('an engine that does not do one claim behind the other is sent one at a time', async () => {
  assert.deepEqual(await ahead(false, [20, 3]), ['beside 0, waits', 'beside 20, waits', 'beside 0, waits'])
})
