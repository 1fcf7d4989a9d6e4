import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uploadScene } from '../../../test/fixtures/upload-scene.ts'
import { anvilMissing, startAnvil } from '../../../test/servers/anvil.ts'
import { kuboMissing, startKubo } from '../../../test/servers/kubo.ts'
import { approvedFetch } from '../../language-models/approved-fetch.ts'

// B75 B76 B77 B78
test('a learning is uploaded through a real Kubo, which keeps it under the content id', {
  skip: kuboMissing || anvilMissing,
}, async (t) => {
  const [kubo, anvil] = await Promise.all([startKubo(), startAnvil()])
  t.after(() => Promise.all([kubo.stop(), anvil.stop()]))
  const scene = await uploadScene(t, anvil, { settings: { ipfsEndpoint: kubo.url } })
  const parts = { ...scene.parts, fetch: approvedFetch({ endpoints: [kubo.url, anvil.url] }) }
  const learnings = [scene.addLearning(), scene.addLearning('Größe, ☃ and "quotes".\n'.repeat(20_000))]
  for (const id of learnings) {
    await scene.finish(id, { parts })
    const row = scene.row(id)
    assert.equal(row?.status, 'confirmed')
    assert.equal((await scene.events(id)).length, 1)
    const ask = (command: string) => fetch(`${kubo.url}/api/v0/${command}?arg=${row?.ipfs_cid}`, { method: 'POST' })
    const document = JSON.parse(await (await ask('cat')).text())
    const stored = scene.database.prepare('SELECT content FROM learnings WHERE id = ?').get(id)
    assert.equal(document.content, stored?.content)
    assert.equal((await ask('pin/ls')).status, 200)
  }
})
