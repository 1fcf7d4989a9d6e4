/** What a member that is closed leaves behind. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freshName, freshTopic, kafkaServer } from '../servers/kafka.ts'

const CLOSING = fileURLToPath(new URL('./closing-members.ts', import.meta.url))

test('a member that is closed while it joins keeps its process alive no longer', async () => {
  const server = await kafkaServer()
  const topic = await freshTopic(server, 'closing')
  const args = [CLOSING, server.url, topic, freshName('closing')]
  // One that went on to beat would be ended by this limit, which is an error.
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 180_000 })
  assert.equal(stdout, 'closed\n')
})
