import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type UploadScene, uploadScene } from '../../../test/fixtures/upload-scene.ts'
import { type Anvil, anvilMissing, startAnvil } from '../../../test/servers/anvil.ts'
import { type Forgotten, forgetConversation } from '../store/forget.ts'

let anvil: Anvil
const skip = { skip: anvilMissing }

before(async () => {
  if (anvilMissing === false) anvil = await startAnvil()
})
after(() => anvil?.stop())

const gone = { code: 'ERR_NON_RETRYABLE', message: /it was forgotten/ }

function forget({ database }: UploadScene, learningId: string): Promise<Forgotten> {
  const row = database.prepare('SELECT conversation_id AS id FROM learnings WHERE id = ?').get(learningId)
  return forgetConversation({ database }, String(row?.id))
}

test('a conversation that is forgotten while IPFS takes a learning says that it may be published', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  let forgotten: Promise<Forgotten> | null = null
  scene.store.disturb = (response) => {
    forgotten = forget(scene, id)
    response.destroy()
  }
  await assert.rejects(scene.run(id), { code: 'ERR_OFFLINE' })
  scene.store.disturb = null
  const { published } = Object(await forgotten)
  assert.deepEqual(
    published.map(({ learning_id, status, chain_tx_hash }: Record<string, unknown>) => [
      learning_id,
      status,
      chain_tx_hash,
    ]),
    [[id, null, null]],
  )
  assert.match(published[0].ipfs_cid, /^bafkrei/)
  await assert.rejects(scene.run(id), gone)
  assert.equal(scene.row(id), undefined)
})

test('a learning that is forgotten before its first byte is sent is not published', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  assert.deepEqual((await forget(scene, id)).published, [])
  await assert.rejects(scene.run(id), gone)
  assert.equal(scene.store.adds, 0)
})

// X099
test(
  'a learning that is forgotten, or gets a finding, while its transaction is signed is not recorded',
  skip,
  async (t) => {
    const scene = await uploadScene(t, anvil)
    const [id, found] = [scene.addLearning(), scene.addLearning('Another.')]
    const onStep = (act: () => unknown) => (step: string) => void (step === 'signed' && act())
    await assert.rejects(scene.run(id, { onStep: onStep(() => forget(scene, id)) }), gone)
    const addFinding = () =>
      scene.database.exec(`INSERT INTO sanitization_log
      SELECT 'f', conversation_id, id, 'name', 'hash', NULL, 'ai', 0.9, created_at FROM messages`)
    await assert.rejects(scene.run(found, { onStep: onStep(addFinding) }), { message: /1 open findings/ })
    assert.deepEqual([scene.transactions(id), scene.transactions(found)], [[], []])
    assert.ok(!scene.sent.includes('eth_sendRawTransaction'))
  },
)
