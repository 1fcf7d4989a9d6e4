import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '../../../src/testing/test-clock.ts'
import { payloadFor } from '../../../test/fixtures/upload-scene.ts'
import { MINE_UPLOAD } from '../jobs/contract.ts'
import { openDatabase } from '../store/database.ts'
import { enqueueJob } from '../store/enqueue.ts'
import { UploadStore } from './upload-store.ts'

const SCOPE = { chainId: 1, contractAddress: `0x${'a'.repeat(40)}` }
const LEARNING = '01K00000000000000000000000'

function stage() {
  const clock = new TestClock()
  const database = openDatabase(':memory:', { nowMs: clock.nowMs() })
  return { clock, database, store: new UploadStore(database, clock, SCOPE) }
}

// B112 B113
test('uploads has the columns and statuses of the design, and one row for a learning', () => {
  const { database } = stage()
  const columns = database.prepare('PRAGMA table_info(uploads)').all()
  assert.deepEqual(
    columns.map(({ name }) => name),
    ['id', 'learning_id', 'ipfs_cid', 'chain_tx_hash', 'status', 'uploaded_at', 'created_at', 'updated_at'],
  )
  const insert = database.prepare(
    `INSERT INTO uploads (id, learning_id, status, created_at, updated_at) VALUES (?, ?, ?, '', '')`,
  )
  for (const [index, status] of ['ipfs_uploaded', 'tx_submitted', 'confirmed'].entries()) {
    insert.run(`${index}`, `learning-${index}`, status)
  }
  assert.throws(() => insert.run('4', 'learning-4', 'failed'), /CHECK/)
  assert.throws(() => insert.run('5', 'learning-0', 'confirmed'), /UNIQUE/)
})

// B117 X099
test('a status is replaced by the same or a later one, never by an earlier one', async () => {
  const { clock, database, store } = stage()
  const row = () =>
    database
      .prepare('SELECT ipfs_cid, chain_tx_hash, status FROM uploads')
      .all()
      .map((one) => Object.values(one))
  store.record(LEARNING, { status: 'ipfs_uploaded', cid: 'a' })
  const first = database.prepare('SELECT * FROM uploads').get()
  await clock.advance('1s')
  store.record(LEARNING, { status: 'ipfs_uploaded', cid: 'b' })
  assert.deepEqual(row(), [['b', null, 'ipfs_uploaded']])
  const second = database.prepare('SELECT * FROM uploads').get()
  assert.deepEqual([second?.id, second?.created_at], [first?.id, first?.created_at])
  assert.ok(String(second?.uploaded_at) > String(first?.uploaded_at) && second?.updated_at === second?.uploaded_at)
  store.record(LEARNING, { status: 'tx_submitted', cid: 'b', txHash: '0x1' })
  store.record(LEARNING, { status: 'ipfs_uploaded', cid: 'c' })
  assert.deepEqual(row(), [['b', '0x1', 'tx_submitted']])
  store.record(LEARNING, { status: 'tx_submitted', cid: 'b', txHash: '0x2' })
  store.record(LEARNING, { status: 'confirmed', cid: 'b', txHash: '0x2' })
  store.record(LEARNING, { status: 'tx_submitted', cid: 'b', txHash: '0x3' })
  store.record(LEARNING, { status: 'confirmed', cid: 'b', txHash: '0x4' })
  assert.deepEqual(row(), [['b', '0x2', 'confirmed']])
})

// B74 B81 B82 B83
test('the job has priority 10, five attempts, the key of its learning, and no private key', () => {
  const { clock, database } = stage()
  const settings = {
    ...SCOPE,
    ipfsEndpoint: 'http://127.0.0.1:1',
    rpcUrl: 'http://127.0.0.1:2',
    privateKeyRef: 'env:WALLET',
  }
  const job = { type: MINE_UPLOAD, about: LEARNING, payload: payloadFor(LEARNING, settings) } as const
  enqueueJob(database, job, clock.nowMs())
  const row = database.prepare('SELECT * FROM job_queue').get()
  assert.deepEqual([row?.priority, row?.max_retries, row?.idempotency_key], [10, 5, `upload-${LEARNING}`])
  assert.equal(JSON.parse(String(row?.payload)).chain_config.private_key_ref, 'env:WALLET')
})

test('a transaction is stored only if nobody was faster', () => {
  const { store } = stage()
  const signed = (learning_id: string, nonce: number, hash: string) =>
    ({ tx_hash: hash, learning_id, genesis_hash: '0x0', sender: '0xs', nonce, raw: '0x00' }) as const
  assert.equal(store.nextNonce('0xs'), 0)
  assert.equal(store.insert(signed('a', 3, '0x1'), { seen: 0, nonceIsNew: true }), true)
  assert.equal(store.insert(signed('b', 3, '0x2'), { seen: 0, nonceIsNew: true }), false)
  assert.equal(store.insert(signed('a', 4, '0x3'), { seen: 0, nonceIsNew: true }), false)
  assert.equal(store.insert(signed('b', 4, '0x4'), { seen: 0, nonceIsNew: true }), true)
  assert.equal(store.insert(signed('a', 3, '0x5'), { seen: 1, nonceIsNew: false }), true)
  assert.deepEqual([store.nextNonce('0xs'), store.transactionAt('0xs', 3)?.tx_hash], [5, '0x5'])
  assert.deepEqual([store.knowsOtherGenesis('0x0'), store.knowsOtherGenesis('0x9')], [false, true])
})
