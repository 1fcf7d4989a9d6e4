import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { uploadScene } from '../../../test/fixtures/upload-scene.ts'
import { type Anvil, anvilMissing, startAnvil } from '../../../test/servers/anvil.ts'
import { UPLOAD_STEPS } from './record-learning.ts'

let anvil: Anvil
const skip = { skip: anvilMissing }

before(async () => {
  if (anvilMissing === false) anvil = await startAnvil()
})
after(() => anvil?.stop())

// B75 B76 B77 B78 B117 X100
test('a fresh learning goes to IPFS, then to the chain, and is confirmed when it is deep enough', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await assert.rejects(scene.run(id), { code: 'ERR_POSTPONED', message: 'the transaction is not mined yet' })
  const submitted = scene.row(id)
  assert.equal(submitted?.status, 'tx_submitted')
  const [cid = '', ...others] = scene.store.blocks.keys()
  assert.deepEqual([submitted?.ipfs_cid, others.length], [cid, 0])
  assert.deepEqual(Object.keys(JSON.parse(String(scene.store.blocks.get(cid)))), [
    'category',
    'confidence',
    'content',
    'created_at',
    'tags',
    'title',
  ])
  await anvil.mine(1)
  await assert.rejects(scene.run(id), { code: 'ERR_POSTPONED', message: '0 of 2 confirmations' })
  await anvil.mine(1)
  await assert.rejects(scene.run(id), { code: 'ERR_POSTPONED', message: '1 of 2 confirmations' })
  await anvil.mine(1)
  const result = await scene.run(id)
  const row = scene.row(id)
  assert.deepEqual(result, { status: 'confirmed', ipfs_cid: cid, chain_tx_hash: row?.chain_tx_hash, confirmations: 2 })
  assert.deepEqual([row?.status, row?.ipfs_cid], ['confirmed', cid])
  assert.equal((await scene.events(id)).length, 1)
  const reported = scene.log.flatMap(({ fields }) => (fields.value === undefined ? [] : [fields.value]))
  assert.deepEqual(reported.at(0), { status: 'ipfs_uploaded', ipfs_cid: cid })
  assert.equal(Object(reported.at(-1)).confirmations, 2)
})

// B79 B114
test('a confirmed upload is skipped without a single request', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await scene.finish(id)
  scene.sent.length = 0
  assert.deepEqual(await scene.run(id), { skipped: true, reason: 'already-confirmed' })
  assert.deepEqual([scene.sent, scene.store.adds], [[], 1])
})

for (const step of UPLOAD_STEPS) {
  // B79 B115 B116 X099
  test(`a run that ends at '${step}' is resumed: one record, one row`, skip, async (t) => {
    const scene = await uploadScene(t, anvil)
    const id = scene.addLearning()
    const crash = new Error('crashed')
    let crashed = 0
    const onStep = (at: string): void => {
      if (at !== step || crashed > 0) return
      crashed += 1
      throw crash
    }
    await assert.rejects(scene.finish(id, { onStep }), crash)
    await scene.finish(id)
    assert.equal((await scene.events(id)).length, 1)
    assert.equal(scene.row(id)?.status, 'confirmed')
    assert.equal(scene.transactions(id).length, 1)
    assert.equal(scene.store.adds, step === 'ipfs-added' ? 2 : 1)
    assert.equal(await anvil.call('eth_getTransactionCount', [scene.sender, 'latest']), '0x1')
  })
}
