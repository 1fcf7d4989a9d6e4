import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONVERSATION } from '../../../test/fixtures/conversations.ts'
import { SANITIZE_AI_VALIDATION } from '../jobs/contract.ts'
import { openDatabase } from './database.ts'
import { enqueueJob } from './enqueue.ts'

test('however many jobs about a conversation run, one that waits is enough', () => {
  const database = openDatabase(':memory:', { nowMs: 0 })
  const add = () => enqueueJob(database, { type: SANITIZE_AI_VALIDATION, about: CONVERSATION, payload: {} }, 0)
  const start = (id: string) => database.prepare(`UPDATE job_queue SET status = 'in_progress' WHERE id = ?`).run(id)
  for (let running = 0; running < 4; running += 1) {
    const first = add()
    assert.equal(first.enqueued, true)
    for (let more = 0; more < 5; more += 1) assert.deepEqual(add(), { id: first.id, enqueued: false })
    start(first.id)
  }
  const stored = database.prepare('SELECT count(*) AS jobs FROM job_queue').get()
  assert.equal(stored?.jobs, 4)
  database.close()
})
