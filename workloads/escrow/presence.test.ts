import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineJob } from '../../src/index.ts'
import { attachPresence, MemoryPresence } from '../../src/observe/index.ts'
import { openForTest } from '../../src/testing/index.ts'
import { presenceAs } from './presence.ts'

// D01
test('workers that share a topic go by their own names, and say goodbye under them', async () => {
  const presence = new MemoryPresence()
  const job = defineJob({ type: 'escrow.commands', run: () => 1 })
  await using t = await openForTest()
  const detach = attachPresence(t.mill, { presence: presenceAs('payout-executor', presence), clock: t.clock })
  await t.mill.work([job], { id: 'payout-executor-1' })
  await t.clock.advance(0)
  const beats = await presence.list()
  assert.deepEqual(
    beats.map(({ type, instance }) => [type, instance]),
    [['payout-executor', 'payout-executor-1']],
  )
  await detach()
  assert.deepEqual(await presence.list(), [])
  assert.deepEqual(await presence.seen(), [])
})
