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
