import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { until } from '../../../test/cli/run.ts'
import { contextOf, type UploadScene, uploadScene } from '../../../test/fixtures/upload-scene.ts'
import { type Anvil, anvilMissing, startAnvil } from '../../../test/servers/anvil.ts'
import { uploadPayload } from '../jobs/payloads.ts'
import { mineUpload } from './mine-upload.ts'

let anvil: Anvil
const skip = { skip: anvilMissing }

before(async () => {
  if (anvilMissing === false) anvil = await startAnvil()
})
after(() => anvil?.stop())

const refused = { code: 'ERR_NON_RETRYABLE' }

function assertNothingPublished(scene: UploadScene, id: string): void {
  assert.deepEqual([scene.store.adds, scene.row(id), scene.transactions(id)], [0, undefined, []])
  assert.ok(!scene.sent.includes('eth_sendRawTransaction'))
}

// B73 B74
test('the payload names learning, endpoints and a reference to the key, never a key', () => {
  const payload = {
    learning_id: '01K00000000000000000000000',
    ipfs_endpoint: 'http://127.0.0.1:5001',
    chain_config: {
      rpc_url: 'http://127.0.0.1:8545',
      contract_address: `0x${'a'.repeat(40)}`,
      private_key_ref: 'env:WALLET',
    },
  }
  assert.deepEqual(uploadPayload.parse(payload), payload)
  const chain = payload.chain_config
  const bad = [
    { ...payload, learning_id: 'x' },
    { ...payload, ipfs_endpoint: 'nowhere' },
    { ...payload, chain_config: { ...chain, private_key_ref: `0x${'1'.repeat(64)}` } },
    { ...payload, chain_config: { ...chain, private_key_ref: `env:${'a'.repeat(64)}` } },
    { ...payload, chain_config: { ...chain, private_key_ref: `file:0x${'1'.repeat(64)}` } },
    { ...payload, chain_config: { ...chain, contract_address: '0x1' } },
    { ...payload, chain_config: { ...chain, private_key: `0x${'1'.repeat(64)}` } },
  ]
  for (const one of bad) assert.equal(uploadPayload.safeParse(one).success, false)
})

// B196 X102
test(
  'a payload that names anything but what is configured is refused, logged, and reaches nothing',
  skip,
  async (t) => {
    const scene = await uploadScene(t, anvil)
    const id = scene.addLearning()
    const payload = scene.payloadOf(id)
    const chain = payload.chain_config
    const others = {
      ipfs_endpoint: { ...payload, ipfs_endpoint: 'http://127.0.0.1:1' },
      rpc_url: { ...payload, chain_config: { ...chain, rpc_url: 'http://127.0.0.1:1' } },
      contract_address: { ...payload, chain_config: { ...chain, contract_address: `0x${'b'.repeat(40)}` } },
      private_key_ref: { ...payload, chain_config: { ...chain, private_key_ref: 'env:PATH' } },
    }
    for (const [name, other] of Object.entries(others)) {
      await assert.rejects(scene.run(id, { payload: other }), {
        ...refused,
        message: new RegExp(`another ${name} than`),
      })
      assert.deepEqual(scene.log.at(-1)?.fields, { learning_id: id, fields: [name] })
    }
    assert.deepEqual(scene.sent, [])
    await assert.rejects(scene.run(id, { parts: { ...scene.parts, upload: null } }), { message: /is not configured/ })
    assertNothingPublished(scene, id)
  },
)

test(
  'a learning with an open finding, one that was forgotten, and one with personal data are not published',
  skip,
  async (t) => {
    const scene = await uploadScene(t, anvil)
    const id = scene.addLearning()
    const finding = { rule: 'mail', category: 'email', replacement: '[EMAIL]', snippet: 'a@example.org' }
    const sanitize = (text: string) => ({ text, findings: text === 'A title' ? [finding] : [], version: 'test' })
    await assert.rejects(scene.run(id, { parts: { ...scene.parts, sanitize } }), (error: Error) => {
      assert.match(error.message, /the rules find email in learning/)
      assert.ok(!error.message.includes(finding.snippet))
      return true
    })
    scene.database.exec(`INSERT INTO sanitization_log
    SELECT 'f', conversation_id, id, 'name', 'hash', NULL, 'ai', 0.9, created_at FROM messages`)
    await assert.rejects(scene.run(id), { ...refused, message: /1 open findings/ })
    scene.database.exec('DELETE FROM conversations')
    await assert.rejects(scene.run(id), { ...refused, message: /forgotten, or never existed/ })
    assertNothingPublished(scene, id)
  },
)

test('a learning waits while messages of its conversation are not validated', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  scene.database.exec('UPDATE messages SET validated_at = NULL')
  await assert.rejects(scene.run(id), { code: 'ERR_POSTPONED', message: /1 messages .* not validated/ })
  assertNothingPublished(scene, id)
  scene.database.exec(`UPDATE messages SET validated_at = created_at`)
  await scene.finish(id)
})

test('a finding that comes up after the upload to IPFS stops the transaction', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  const crash = new Error('crashed')
  const onStep = () => {
    throw crash
  }
  await assert.rejects(scene.run(id, { onStep }), crash)
  scene.database.exec(`INSERT INTO sanitization_log
    SELECT 'f', conversation_id, id, 'name', 'hash', NULL, 'ai', 0.9, created_at FROM messages`)
  await assert.rejects(scene.run(id), refused)
  assert.equal(scene.transactions(id).length, 0)
})

test(
  'IPFS that answers another content id, nonsense or an error: an ordinary retry, and nothing is recorded',
  skip,
  async (t) => {
    const scene = await uploadScene(t, anvil)
    const id = scene.addLearning()
    const answers: readonly (readonly [status: number, body: string, message: RegExp])[] = [
      [
        200,
        '{"Hash":"bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"}',
        /another|answers the content id bafkreihdw/,
      ],
      [200, '<html>', /not JSON/],
      [200, '{}', /without a content id/],
      [500, '{"Message":"disk full"}', /answers 500/],
      [404, 'no', /answers 404/],
    ]
    for (const [status, body, message] of answers) {
      scene.store.disturb = (response) => void response.writeHead(status).end(body)
      await assert.rejects(scene.run(id), (error: Error) => {
        assert.match(error.message, message)
        assert.equal(Reflect.get(error, 'code'), undefined)
        return true
      })
      assert.deepEqual([scene.row(id), scene.transactions(id)], [undefined, []])
    }
    scene.store.disturb = null
    await scene.finish(id)
  },
)

// X101
test('without a connection, with an overloaded server and without an answer the job is deferred', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const id = scene.addLearning()
  scene.store.disturb = (response) => void response.socket?.destroy()
  await assert.rejects(scene.run(id), { code: 'ERR_OFFLINE', message: /IPFS cannot be reached/ })
  scene.store.disturb = (response) => void response.writeHead(429, { 'retry-after': '7' }).end()
  await assert.rejects(scene.run(id), { code: 'ERR_OFFLINE', delay: 7_000 })
  let asked = false
  scene.store.disturb = () => {
    asked = true
  }
  const running = scene.run(id)
  const rejected = assert.rejects(running, { code: 'ERR_OFFLINE', message: /did not answer within 30000 ms/ })
  await until(() => asked)
  await scene.clock.advance('30s')
  await rejected
  assert.equal(scene.row(id), undefined)
})

test('a run whose job is cancelled ends with the reason of its signal', skip, async (t) => {
  const scene = await uploadScene(t, anvil)
  const stopping = new AbortController()
  const reason = new Error('stopping')
  scene.store.disturb = () => stopping.abort(reason)
  const context = contextOf(scene.payloadOf(scene.addLearning()), [], stopping.signal)
  await assert.rejects(async () => mineUpload(scene.parts)(context), reason)
})

// B74
test('neither the key nor the address of the chain is in an error, the log or the database', skip, async (t) => {
  const scene = await uploadScene(t, anvil, { settings: { rpcUrl: `${anvil.url}/?key=secret-path` } })
  const id = scene.addLearning()
  process.env[scene.name] = `${scene.key}00`
  const error = await scene.finish(id).catch((thrown: unknown) => thrown)
  assert.ok(error instanceof Error)
  process.env[scene.name] = `0x${'f'.repeat(64)}`
  const invalid = await scene.finish(id).catch((thrown: unknown) => thrown)
  assert.ok(invalid instanceof Error && /holds no valid key/.test(invalid.message), String(invalid))
  process.env[scene.name] = scene.key
  await scene.finish(id)
  const tables = ['uploads', 'upload_transactions', 'job_queue']
  const stored = tables.flatMap((table) => scene.database.prepare(`SELECT * FROM ${table}`).all())
  const told = JSON.stringify([
    scene.log,
    stored,
    error.stack,
    String(error.cause),
    invalid.stack,
    String(invalid.cause),
  ])
  for (const secret of [scene.key.slice(2, 40), 'f'.repeat(64), 'secret-path'])
    assert.ok(!told.includes(secret), secret)
})
