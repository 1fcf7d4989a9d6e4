import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../../../test/cli/run.ts'
import { payloadFor, recordedEvents, type UploadScene, uploadScene } from '../../../test/fixtures/upload-scene.ts'
import { type Anvil, anvilMissing, startAnvil } from '../../../test/servers/anvil.ts'
import { recordId } from './chain.ts'
import { deployRegistry } from './contract/deploy.ts'
import { loadViem } from './viem.ts'

let anvil: Anvil
const skip = { skip: anvilMissing }

before(async () => {
  if (anvilMissing === false) anvil = await startAnvil()
})
after(() => anvil?.stop())

const postponed = { code: 'ERR_POSTPONED' }
const crash = new Error('crashed')
const crashAt = (step: string) => ({
  onStep(at: string): void {
    if (at === step) throw crash
  },
})

async function assertRecordedOnce(scene: UploadScene, id: string): Promise<void> {
  assert.equal((await scene.events(id)).length, 1)
  assert.equal(scene.row(id)?.status, 'confirmed')
}

// X099 X100
test('a transaction that a reorganisation removes is sent again, with the same bytes', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await assert.rejects(scene.run(id), postponed)
  await anvil.mine(2)
  await assert.rejects(scene.run(id), { message: '1 of 2 confirmations' })
  await anvil.call('anvil_reorg', [2, []])
  assert.equal((await scene.events(id)).length, 0)
  await scene.finish(id)
  await assertRecordedOnce(scene, id)
  assert.equal(scene.transactions(id).length, 1)
})

// X099
test('a transaction that the node dropped is sent again, with the same bytes', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await assert.rejects(scene.run(id), postponed)
  await anvil.call('anvil_dropTransaction', [scene.row(id)?.chain_tx_hash])
  await assert.rejects(scene.run(id), postponed)
  await scene.finish(id)
  await assertRecordedOnce(scene, id)
  assert.equal(scene.transactions(id).length, 1)
})

// B116
test('while a transaction waits, a run only looks at it', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await assert.rejects(scene.run(id), postponed)
  scene.sent.length = 0
  await assert.rejects(scene.run(id), { ...postponed, message: 'the transaction is not mined yet' })
  assert.ok(scene.sent.includes('eth_getTransactionByHash'))
  assert.deepEqual(
    scene.sent.filter((call) => call.startsWith('/api/v0') || call === 'eth_sendRawTransaction'),
    [],
  )
})

// X099
test(
  'a transaction that waits too long gets higher fees under the same nonce, and every hash is kept',
  skip,
  async (t) => {
    const scene = await uploadScene(t, anvil)
    const id = scene.addLearning()
    await assert.rejects(scene.run(id), postponed)
    await scene.clock.advance('3m')
    await assert.rejects(scene.run(id), postponed)
    const [first, raised, ...more] = scene.transactions(id)
    assert.equal(more.length, 0)
    assert.equal(raised?.nonce, first?.nonce)
    const { viem } = await loadViem()
    const feesOf = (row: typeof first) => viem.parseTransaction(`0x${String(row?.raw).slice(2)}`)
    for (const name of ['maxFeePerGas', 'maxPriorityFeePerGas'] as const) {
      assert.ok((feesOf(raised)[name] ?? 0n) * 1000n >= (feesOf(first)[name] ?? 0n) * 1125n, name)
    }
    await scene.finish(id)
    await assertRecordedOnce(scene, id)
    assert.equal(scene.row(id)?.chain_tx_hash, raised?.tx_hash)
  },
)

/** Sends something else with the key of the uploads. */
async function spendNonce(scene: UploadScene): Promise<void> {
  await anvil.call('anvil_impersonateAccount', [scene.sender])
  await anvil.sendTransaction({ from: scene.sender, to: scene.sender })
  await anvil.mine(1)
  await anvil.call('anvil_stopImpersonatingAccount', [scene.sender])
}

// X099
test('a nonce that another transaction took is replaced, but only when that is final', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await assert.rejects(scene.run(id, crashAt('transaction-stored')), crash)
  await spendNonce(scene)
  await assert.rejects(scene.run(id), { ...postponed, message: /nonce 0 was used by another transaction/ })
  assert.equal(scene.transactions(id).length, 1)
  await scene.finish(id)
  await assertRecordedOnce(scene, id)
  assert.deepEqual(
    scene.transactions(id).map(({ nonce }) => nonce),
    [0, 1],
  )
  assert.ok(
    scene.log.some(({ level, text }) => level === 'warn' && text.includes('Another transaction used the nonce')),
  )
})

test('a node of another chain is refused before anything is published or signed', skip, async (t) => {
  const scene = await uploadScene(t, anvil, { settings: { chainId: 1 } })
  const id = scene.addLearning()
  await assert.rejects(scene.run(id), { code: 'ERR_NON_RETRYABLE', message: /the id 31337, not 1/ })
  assert.deepEqual([scene.transactions(id), scene.row(id), scene.store.adds], [[], undefined, 0])
})

// X101
test('an account without funds waits without using an attempt, and goes on when it has some', skip, async (t) => {
  const scene = await uploadScene(t, anvil, { funded: false })
  const id = scene.addLearning()
  await assert.rejects(scene.run(id), { ...postponed, message: new RegExp(`${scene.sender} cannot pay`) })
  assert.ok(scene.log.some(({ level, fields }) => level === 'warn' && fields.learning_id === id))
  assert.equal(scene.transactions(id).length, 0)
  await anvil.call('anvil_setBalance', [scene.sender, '0xde0b6b3a7640000'])
  await scene.finish(id)
  await assertRecordedOnce(scene, id)
})

test('a chain that was started again is refused, with and without the contract', skip, async (t) => {
  let own = await startAnvil()
  t.after(() => own.stop())
  const scene = await uploadScene(t, own)
  const [id, other] = [scene.addLearning(), scene.addLearning()]
  await assert.rejects(scene.run(id), postponed)
  await own.stop()
  await assert.rejects(scene.run(id), { code: 'ERR_OFFLINE' })
  own = await startAnvil({ port: own.port, args: ['--no-mining', '--timestamp', '1700000000'] })
  await assert.rejects(scene.run(id), { code: 'ERR_NON_RETRYABLE', message: /no contract is at/ })
  assert.equal(await own.deployRegistry(), scene.settings.contractAddress)
  const refused = { code: 'ERR_NON_RETRYABLE', message: /began with another block/ }
  await assert.rejects(scene.run(id), refused)
  await assert.rejects(scene.run(other), refused)
  assert.deepEqual([scene.row(id)?.status, scene.transactions(other).length], ['tx_submitted', 0])
})

test('a record that is on the chain already is adopted, and nothing is sent', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await assert.rejects(scene.run(id, crashAt('ipfs-stored')), crash)
  const txHash = await recordFromElsewhere(scene, id, String(scene.row(id)?.ipfs_cid))
  await scene.finish(id)
  await assertRecordedOnce(scene, id)
  assert.deepEqual([scene.row(id)?.chain_tx_hash, scene.transactions(id).length], [txHash, 0])
})

test('a record under our id with another content id is refused', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await recordFromElsewhere(scene, id, 'another')
  await assert.rejects(scene.run(id), { code: 'ERR_NON_RETRYABLE', message: /with another content id/ })
  assert.equal(scene.transactions(id).length, 0)
})

async function recordFromElsewhere(scene: UploadScene, learningId: string, cid: string): Promise<string> {
  const { viem } = await loadViem()
  const abi = viem.parseAbi(['function record(bytes32 id, string cid)'])
  const data = viem.encodeFunctionData({ abi, functionName: 'record', args: [recordId(learningId), cid] })
  const hash = await anvil.sendTransaction({ to: scene.settings.contractAddress, data })
  await anvil.mine(1)
  return hash
}

// X099
test('our transaction that reverts, because another one recorded the same, ends as confirmed', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await assert.rejects(scene.run(id), postponed)
  const ours = scene.row(id)?.chain_tx_hash
  await anvil.call('anvil_dropTransaction', [ours])
  const txHash = await recordFromElsewhere(scene, id, String(scene.row(id)?.ipfs_cid))
  await anvil.call('eth_sendRawTransaction', [scene.transactions(id)[0]?.raw])
  await anvil.mine(1)
  assert.equal(Object(await anvil.call('eth_getTransactionReceipt', [ours])).status, '0x0')
  await scene.finish(id)
  await assertRecordedOnce(scene, id)
  assert.equal(scene.row(id)?.chain_tx_hash, txHash)
})

test('the contract refuses a repeated id', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await recordFromElsewhere(scene, id, 'first')
  const repeated = await recordFromElsewhere(scene, id, 'second')
  assert.equal(Object(await anvil.call('eth_getTransactionReceipt', [repeated])).status, '0x0')
  assert.equal((await scene.events(id)).length, 1)
})

// B76
test('a registry that deployRegistry made takes records', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const { chainId, rpcUrl, privateKeyRef } = scene.settings
  const deploying = deployRegistry({ rpcUrl, chainId, privateKeyRef })
  await until(async () => (await anvil.call('eth_getTransactionCount', [scene.sender, 'pending'])) === '0x1')
  await anvil.mine(1)
  const { address } = await deploying
  const upload = { ...scene.settings, contractAddress: address }
  const id = scene.addLearning()
  await scene.finish(id, { parts: { ...scene.parts, upload }, payload: payloadFor(id, upload) })
  assert.equal((await recordedEvents(anvil, address, id)).length, 1)
  await assert.rejects(deployRegistry({ rpcUrl, chainId: 1, privateKeyRef }), { code: 'ERR_NON_RETRYABLE' })
})
