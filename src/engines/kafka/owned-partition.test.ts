import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecordsBatch } from '@platformatic/kafka'
import { loadClient } from './driver.ts'
import { firstPointOf } from './offsets.ts'
import { OwnedPartition } from './owned-partition.ts'
import { RecordCursor } from './record-cursor.ts'

const client = await loadClient()
const place = { topic: 'escrow.commands', partition: 3 }

/** A piece of the log with so many records of a kilobyte, a hundred to a batch. */
function pieceOf(records: number): Buffer {
  const batches: Buffer[] = []
  for (let offset = 0; offset < records; offset += 100) {
    const messages = Array.from({ length: 100 }, () => ({ topic: place.topic, value: Buffer.alloc(1_024, 'x') }))
    const batch = createRecordsBatch(messages, { compression: 'none' }).buffer
    batch.writeBigInt64BE(BigInt(offset))
    batches.push(batch)
  }
  return Buffer.concat(batches)
}

function ownedPartition(): OwnedPartition {
  const membership = { generationId: 1, memberId: 'one' }
  return new OwnedPartition(place, firstPointOf('id', 0n), { membership, hold: 'key', group: 'group' })
}

function takeAndFinish(owned: OwnedPartition, count: number): void {
  for (let taken = 0; taken < count; taken += 1) {
    const held = owned.take(0)
    assert.ok(held !== null)
    owned.watermark.finish(held.offset)
    owned.queues.finish(held)
  }
}

test('more is fetched while half a megabyte is still unread, and not only when all is read', () => {
  const owned = ownedPartition()
  assert.equal(owned.wantsMore, true)
  owned.feed(new RecordCursor(client, place, pieceOf(1_000), 0))
  assert.equal(owned.wantsMore, false)
  takeAndFinish(owned, 450)
  assert.equal(owned.wantsMore, false)
  takeAndFinish(owned, 100)
  assert.equal(owned.wantsMore, true)
  takeAndFinish(owned, 450)
  assert.deepEqual([owned.take(0), owned.wantsMore, owned.watermark.position], [null, true, 1_000])
})
