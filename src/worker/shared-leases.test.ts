import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker as Thread } from 'node:worker_threads'
import { leaseOf } from '../../test/fixtures/lease.ts'
import { LeaseReader, LeaseWriter, type SharedLease } from './shared-leases.ts'

function kept(handle: number, id = `j${handle}`): SharedLease {
  const lease = leaseOf(id)
  return { handle, lease, leaseMs: 60_000, heldAtMs: 5, timeoutMs: 300_000, renewedAtMs: 5, slot: null }
}

function paired() {
  const reader = new LeaseReader()
  let pages = 0
  const writer = new LeaseWriter((page) => {
    pages += 1
    reader.add(page)
  })
  return { reader, writer, pages: () => pages }
}

function idsOf(reader: LeaseReader): readonly string[] {
  return reader
    .held()
    .map(({ lease }) => lease.job.id)
    .sort()
}

test('what is written down is read with all that renewing needs', () => {
  const { reader, writer } = paired()
  // A handle beyond 32 bits, and an id that no encoding of characters would carry unchanged.
  const handle = 2 ** 40 + 1
  writer.write(kept(handle, 'j\uD800\0ü'))
  const [read, ...others] = reader.held()
  assert.deepEqual(others, [])
  assert.equal(read?.handle, handle)
  assert.equal(read.lease.job.id, 'j\uD800\0ü')
  assert.equal(read.lease.job.type, 't')
  assert.equal(read.lease.token, 'token-j\uD800\0ü')
  assert.equal(read.leaseMs, 60_000)
  assert.equal(read.timeoutMs, 300_000)
  assert.ok(Math.abs(read.heldAtMs - 5) < 0.01, `held at ${read.heldAtMs}`)
})

test('what is crossed out is not read, and its slot is used again', () => {
  const { reader, writer, pages } = paired()
  const first = kept(1)
  writer.write(first)
  writer.write(kept(2))
  writer.clear(first)
  writer.clear(first)
  assert.deepEqual(idsOf(reader), ['j2'])
  for (let handle = 3; handle < 2_000; handle += 1) {
    const passing = kept(handle)
    writer.write(passing)
    writer.clear(passing)
  }
  assert.equal(pages(), 1)
  assert.deepEqual(idsOf(reader), ['j2'])
})

test('there is room for as many as are held, and for ids of any length', () => {
  const { reader, writer } = paired()
  const ids = Array.from({ length: 1_000 }, (_, index) => `j${index}`.padEnd((index * 13) % 3_000, 'x'))
  for (const [index, id] of ids.entries()) writer.write(kept(index, id))
  assert.deepEqual(idsOf(reader), [...ids].sort())
})

test('a lease that is still there is the same object, with when it was renewed', () => {
  const { reader, writer } = paired()
  writer.write(kept(1))
  const [before] = reader.held()
  assert.ok(before !== undefined)
  before.renewedAtMs = 77
  writer.write(kept(2))
  assert.equal(reader.held()[0]?.renewedAtMs, 77)
})

test('a loss is told once, and what was lost is not held any more', () => {
  const { reader, writer } = paired()
  writer.write(kept(1))
  writer.write(kept(2))
  assert.equal(reader.held().length, 2)
  assert.equal(reader.lose(1), true)
  assert.equal(reader.lose(1), false)
  assert.deepEqual(idsOf(reader), ['j2'])
})

/** Writes and crosses out as fast as it can: ids of many lengths in few slots. */
const CHURN = `
  import { parentPort, workerData } from 'node:worker_threads'
  const { LeaseWriter } = await import(workerData.file)
  const writer = new LeaseWriter((page) => parentPort.postMessage(page))
  const held = []
  for (let handle = 1; ; handle += 1) {
    const id = String(handle % 10).repeat(1 + (handle % 90))
    const lease = { job: { id, type: 't' }, token: 'token-' + id }
    const kept = { handle, lease, heldAtMs: 0, leaseMs: id.length, timeoutMs: 1, slot: null }
    writer.write(kept)
    held.push(kept)
    if (held.length > 8) writer.clear(held.shift())
  }
`

test('a slot that changes under the reader is never taken for a lease', { timeout: 60_000 }, async (t) => {
  const reader = new LeaseReader()
  const file = new URL('./shared-leases.ts', import.meta.url).href
  const workerData = { file }
  const thread = new Thread(new URL(`data:text/javascript,${encodeURIComponent(CHURN)}`), { workerData })
  t.after(() => thread.terminate())
  const page = await new Promise<SharedArrayBuffer>((resolve) => thread.once('message', resolve))
  reader.add(page)
  const handles = new Set<number>()
  while (handles.size < 5_000) {
    for (const { handle, lease, leaseMs } of reader.held()) {
      const { id } = lease.job
      assert.equal(id, String(handle % 10).repeat(1 + (handle % 90)))
      assert.equal(lease.token, `token-${id}`)
      assert.equal(leaseMs, id.length)
      handles.add(handle)
    }
  }
})
