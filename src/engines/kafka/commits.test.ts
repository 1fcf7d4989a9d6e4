import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../../testing/test-clock.ts'
import { COMMIT_MS, Commits } from './commits.ts'
import { loadClient } from './driver.ts'
import { OwnedPartition } from './owned-partition.ts'

async function scene() {
  const clock = new TestClock()
  const told = { isAway: false, commits: 0, freed: 0 }
  const point = { offset: 0n, metadata: null, topicId: 'id', doubtfulBelow: 0n }
  const options = { membership: { generationId: 1, memberId: 'm' }, hold: 'key', group: 'g' } as const
  const owned = new OwnedPartition({ topic: 't', partition: 0 }, point, options)
  const commits = new Commits({
    client: await loadClient(),
    clock,
    group: 'g',
    calls: {
      call: async <Arguments extends unknown[], Answer>(_name: string, ..._args: Arguments): Promise<Answer> => {
        if (told.isAway) throw new Error('away')
        told.commits += 1
        // Nobody looks at the answer of a commit.
        return undefined as Answer
      },
    },
    onFenced: () => {},
    onFreed: () => {
      told.freed += 1
    },
    onError: () => {},
  })
  return { clock, told, owned, commits }
}

test('what is marked is committed soon, once', async () => {
  const { clock, told, owned, commits } = await scene()
  commits.mark(owned)
  commits.mark(owned)
  await clock.advance(COMMIT_MS - 1)
  assert.equal(told.commits, 0)
  await clock.advance(1)
  assert.equal(told.commits, 1)
  await clock.advance(10_000)
  assert.deepEqual([told.commits, commits.isStuck], [1, false])
})

test('it is stuck after a second without a commit, and tells when it is not any more', async () => {
  const { clock, told, owned, commits } = await scene()
  told.isAway = true
  commits.mark(owned)
  await clock.advance(1_000)
  assert.equal(commits.isStuck, false)
  await clock.advance(1)
  assert.equal(commits.isStuck, true)
  told.isAway = false
  await clock.advance(2 * COMMIT_MS)
  assert.deepEqual([told.commits, told.freed, commits.isStuck], [1, 1, false])
})

test('what could not be committed and is lost keeps nobody stuck', async () => {
  const { clock, told, owned, commits } = await scene()
  told.isAway = true
  commits.mark(owned)
  await clock.advance(5_000)
  assert.equal(commits.isStuck, true)
  owned.isLost = true
  await clock.advance(2 * COMMIT_MS)
  assert.deepEqual([told.commits, told.freed, commits.isStuck], [0, 1, false])
})
