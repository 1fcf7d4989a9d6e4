import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../time/clock.ts'
import { Leadership } from './leadership.ts'
import { createMemoryRecords, RecordTable } from './memory-records.ts'

function recordsThatCount() {
  const table = new RecordTable()
  const records = createMemoryRecords({ clock: systemClock, table: () => table, enqueue: () => [] })
  const reads = { count: 0 }
  const counting: typeof records = {
    ...records,
    list: (kind) => {
      reads.count += 1
      return records.list(kind)
    },
  }
  return { records, counting, reads }
}

test('a leader renews its term without reading it', async () => {
  const { counting, reads } = recordsThatCount()
  const leadership = new Leadership(counting)
  const first = await leadership.campaign('keeper', 'ann', 60_000)
  assert.equal(reads.count, 1)
  for (let renewal = 0; renewal < 3; renewal += 1) {
    assert.deepEqual(await leadership.campaign('keeper', 'ann', 60_000), first)
  }
  assert.equal(reads.count, 1)
})

test('a leader that another has followed reads who leads', async () => {
  const { records, counting } = recordsThatCount()
  const leadership = new Leadership(counting)
  await leadership.campaign('keeper', 'ann', 1)
  await new Promise((resolve) => setTimeout(resolve, 5))
  const other = await new Leadership(records).campaign('keeper', 'bob', 60_000)
  assert.deepEqual([other.holder, other.number], ['bob', 2])
  const heard = await leadership.campaign('keeper', 'ann', 60_000)
  assert.deepEqual([heard.holder, heard.number], ['bob', 2])
  await new Leadership(records).resign('keeper', 'bob')
  const again = await leadership.campaign('keeper', 'ann', 60_000)
  assert.deepEqual([again.holder, again.number], ['ann', 3])
})

test('a leader whose answer was lost reads its term again', async () => {
  const { records, counting, reads } = recordsThatCount()
  let loses = false
  const leadership = new Leadership({
    ...counting,
    save: async (...args) => {
      const receipts = await records.save(...args)
      if (loses) throw new Error('the connection was lost')
      return receipts
    },
  })
  await leadership.campaign('keeper', 'ann', 60_000)
  loses = true
  await assert.rejects(leadership.campaign('keeper', 'ann', 60_000))
  loses = false
  const term = await leadership.campaign('keeper', 'ann', 60_000)
  assert.deepEqual([term.holder, term.number, reads.count], ['ann', 1, 2])
})
