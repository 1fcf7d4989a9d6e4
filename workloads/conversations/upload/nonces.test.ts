import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import { addLearning, type UploadScene, uploadScene } from '../../../test/fixtures/upload-scene.ts'
import { type Anvil, anvilMissing, startAnvil } from '../../../test/servers/anvil.ts'
import { openDatabase } from '../store/database.ts'
import { cidOf } from './cid.ts'
import { UploadStore } from './upload-store.ts'

let anvil: Anvil
const skip = { skip: anvilMissing }
const files = tempFiles()

before(async () => {
  if (anvilMissing === false) anvil = await startAnvil()
})
after(() => anvil?.stop())

const crash = new Error('crashed')
const crashAt = (step: string) => ({
  onStep(at: string): void {
    if (at === step) throw crash
  },
})

async function assertRecordedOnce(scene: UploadScene, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    assert.equal((await scene.events(id)).length, 1)
    assert.equal(scene.row(id)?.status, 'confirmed')
  }
}

/** The parts of another worker on the same file. */
function otherWorker(t: TestContext, scene: UploadScene, file: string) {
  const database = openDatabase(file, { nowMs: scene.clock.nowMs() })
  t.after(() => database.close())
  return { ...scene.parts, database }
}

// B79 X099
test('two workers on one learning sign one transaction', skip, async (t) => {
  const file = files.next()
  const scene = await uploadScene(t, anvil, { file })
  const parts = otherWorker(t, scene, file)
  for (let round = 0; round < 3; round += 1) {
    const id = scene.addLearning(`Round ${round}.`)
    await Promise.all([scene.finish(id), scene.finish(id, { parts })])
    await assertRecordedOnce(scene, [id])
    assert.equal(scene.transactions(id).length, 1)
  }
})

// X099
test('two workers with one key never give a nonce to two learnings', skip, async (t) => {
  const file = files.next()
  const scene = await uploadScene(t, anvil, { file })
  const parts = otherWorker(t, scene, file)
  const ids = Array.from({ length: 12 }, (_, index) => scene.addLearning(`Learning ${index}.`))
  await Promise.all(ids.map((id, index) => scene.finish(id, index % 2 === 0 ? {} : { parts })))
  await assertRecordedOnce(scene, ids)
  const nonces = ids.flatMap((id) => scene.transactions(id).map(({ nonce }) => Number(nonce)))
  assert.deepEqual(
    nonces.toSorted((one, other) => one - other),
    ids.map((_, index) => index),
  )
})

// X099
test('of two workers that signed with the same nonce at the same moment, one signs again', skip, async (t) => {
  const file = files.next()
  const scene = await uploadScene(t, anvil, { file })
  const ids = [scene.addLearning('First.'), scene.addLearning('Second.')]
  const { promise, resolve } = Promise.withResolvers<void>()
  let signed = 0
  const onStep = (step: string): Promise<void> | undefined => {
    if (step !== 'signed') return undefined
    signed += 1
    if (signed === ids.length) resolve()
    return promise
  }
  const workers = [scene.parts, otherWorker(t, scene, file)]
  await Promise.all(ids.map((id, index) => scene.finish(id, { onStep, parts: workers[index] ?? scene.parts })))
  await assertRecordedOnce(scene, ids)
  assert.equal(signed, 3)
  assert.deepEqual(ids.flatMap((id) => scene.transactions(id).map(({ nonce }) => nonce)).toSorted(), [0, 1])
})

test('a transaction that was stored and never sent is sent by the upload that it holds back', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const [first, second] = [scene.addLearning('First.'), scene.addLearning('Second.')]
  await assert.rejects(scene.run(first, crashAt('transaction-stored')), crash)
  await scene.finish(second)
  assert.equal((await scene.events(first)).length, 1)
  await scene.finish(first)
  await assertRecordedOnce(scene, [first, second])
  assert.equal(scene.transactions(first).length, 1)
})

test('where its learning was forgotten, an empty transaction takes its nonce after a while', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const [first, second] = [scene.addLearning('First.'), scene.addLearning('Second.')]
  await assert.rejects(scene.run(first, crashAt('transaction-stored')), crash)
  scene.database.prepare('DELETE FROM learnings WHERE id = ?').run(first)
  await assert.rejects(scene.run(first), { code: 'ERR_NON_RETRYABLE', message: /forgotten/ })
  await assert.rejects(scene.run(second), { code: 'ERR_POSTPONED' })
  await scene.clock.advance('3m')
  await scene.finish(second)
  await assertRecordedOnce(scene, [second])
  assert.deepEqual(await scene.events(first), [])
  assert.ok(scene.log.some(({ text }) => text.includes('an empty transaction took it')))
})

test('a row whose transaction is known to the node but not stored here is waited for', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await assert.rejects(scene.run(id), { code: 'ERR_POSTPONED' })
  scene.database.exec('DELETE FROM upload_transactions')
  await assert.rejects(scene.run(id), { code: 'ERR_POSTPONED', message: 'the transaction is not mined yet' })
  assert.equal(scene.transactions(id).length, 0)
  await scene.finish(id)
  await assertRecordedOnce(scene, [id])
})

test('a row whose transaction was mined for another contract does not wait for it', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  const elsewhere = await anvil.sendTransaction({ to: scene.sender })
  await anvil.mine(1)
  const { parts } = scene
  new UploadStore(parts.database, parts.clock, scene.settings).record(id, {
    status: 'tx_submitted',
    cid: cidOf(new TextEncoder().encode('a document')),
    txHash: elsewhere,
  })
  await scene.finish(id)
  await assertRecordedOnce(scene, [id])
})

// X099
test(
  'two databases on two machines with one key: nonces collide, and each learning is recorded once',
  skip,
  async (t) => {
    const scene = await uploadScene(t, anvil)
    const parts = otherWorker(t, scene, files.next())
    const here = Array.from({ length: 4 }, (_, index) => scene.addLearning(`Here ${index}.`))
    const there = Array.from({ length: 4 }, (_, index) => addLearning(parts, `There ${index}.`))
    await Promise.all([...here.map((id) => scene.finish(id)), ...there.map((id) => scene.finish(id, { parts }))])
    for (const id of [...here, ...there]) assert.equal((await scene.events(id)).length, 1)
    const confirmed = `SELECT count(*) AS count FROM uploads WHERE status = 'confirmed'`
    for (const { database } of [scene.parts, parts]) assert.equal(database.prepare(confirmed).get()?.count, 4)
  },
)

// X099
test('a reorganisation that gives the nonce of a mined record to something else: one record', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  await assert.rejects(scene.run(id), { code: 'ERR_POSTPONED' })
  await anvil.mine(2)
  await assert.rejects(scene.run(id), { message: '1 of 2 confirmations' })
  await anvil.call('anvil_reorg', [2, []])
  await anvil.call('anvil_dropAllTransactions')
  await anvil.call('anvil_impersonateAccount', [scene.sender])
  await anvil.sendTransaction({ from: scene.sender, to: scene.sender, nonce: '0x0' })
  await anvil.mine(1)
  await anvil.call('anvil_stopImpersonatingAccount', [scene.sender])
  await assert.rejects(scene.run(id), { code: 'ERR_POSTPONED', message: /nonce 0 was used by another transaction/ })
  await scene.finish(id)
  await assertRecordedOnce(scene, [id])
  assert.deepEqual(
    scene.transactions(id).map(({ nonce }) => nonce),
    [0, 1],
  )
})
