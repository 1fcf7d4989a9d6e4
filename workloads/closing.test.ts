/** What a workload has opened beside its mill is closed also when the mill fails to close. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Mill } from '../src/client/mill.ts'
import { tempFiles } from '../test/fixtures/temp-files.ts'
import { openConversations } from './conversations/index.ts'
import { openMemories } from './memories/index.ts'
import { openWebhooks } from './webhooks/index.ts'

const files = tempFiles()

function failing(t: TestContext, { engine }: Mill): void {
  const close = engine.close.bind(engine)
  t.mock.method(engine, 'close', async () => {
    await close()
    throw new Error('cannot close')
  })
}

test('memories close their tables', async (t) => {
  const memories = await openMemories({ engine: `sqlite:${files.next()}` })
  failing(t, memories.mill)
  await assert.rejects(memories.close(), /cannot close/)
  await assert.rejects(memories.repository.list({ workspaceId: 'w', userId: 'u' }), /not open|closed/)
})

test('webhooks close their tables', async (t) => {
  const webhooks = await openWebhooks({ engine: `sqlite:${files.next()}` })
  failing(t, webhooks.mill)
  await assert.rejects(webhooks.close(), /cannot close/)
  await assert.rejects(webhooks.deliveries(), /not open|closed/)
})

test('conversations close their tables', async (t) => {
  const conversations = await openConversations({ engine: `sqlite:${files.next()}` })
  failing(t, conversations.mill)
  await assert.rejects(conversations.close(), /cannot close/)
  assert.throws(() => conversations.learnings.search('anything'), /not open|closed/)
})
