import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openDesk } from '../../desk/desk.ts'
import { defineJob, open } from '../../index.ts'
import {
  BY_KEY,
  BY_LATEST_KEY,
  BY_RELEASED_KEY,
  BY_TAG,
  BY_TENANT,
  BY_TIME,
  HAS_FOREIGN_ID,
  HAS_LATEST,
} from './search.ts'

async function opened() {
  const handle = new DatabaseSync(':memory:')
  const mill = await open(handle)
  return { handle, mill, [Symbol.asyncDispose]: () => mill.close() }
}

const mail = defineJob({ type: 'mail', attempts: 1 })

test('every driver of a search goes by an index', async () => {
  await using store = await opened()
  const statements = { BY_KEY, BY_LATEST_KEY, BY_RELEASED_KEY, BY_TAG, BY_TENANT, BY_TIME, HAS_FOREIGN_ID, HAS_LATEST }
  for (const [name, statement] of Object.entries(statements)) {
    const plan = store.handle.prepare(`EXPLAIN QUERY PLAN ${statement}`).all()
    const text = plan.map(({ detail }) => String(detail)).join('\n')
    assert.doesNotMatch(
      text,
      /SCAN (job_queue|job_tags)(?! USING COVERING INDEX idx_job_queue_latest)/,
      `${name}: ${text}`,
    )
    if (name !== 'BY_LATEST_KEY') assert.doesNotMatch(text, /TEMP B-TREE/, `${name}: ${text}`)
  }
})

test('the tags of jobs go with them, however they go', async () => {
  await using store = await opened()
  const { mill, handle } = store
  const tags = () =>
    handle
      .prepare('SELECT tag FROM job_tags ORDER BY tag')
      .all()
      .map(({ tag }) => tag)
  const options = (tag: string) => ({ tags: [tag] })
  await mill.enqueue(mail, 1, { ...options('completes'), removeOnComplete: true })
  const erased = await mill.enqueue(mail, 2, options('erased'))
  const purged = await mill.enqueue(mail, 'dies', options('purged'))
  await mill.enqueue(mail, 3, { ...options('stays'), delay: '1h' })
  assert.deepEqual(tags(), ['completes', 'erased', 'purged', 'stays'])
  const worker = await mill.work([
    mail.handledBy(({ payload }) => {
      if (payload === 'dies') throw new Error('no')
    }),
  ])
  await mill.result(erased)
  await mill.result(purged).catch(() => {})
  while (tags().length > 3) await new Promise((resolve) => setImmediate(resolve))
  const desk = openDesk(mill)
  await desk.purge({ ids: [purged.id] }, { who: 'ann', reason: 'test' })
  await desk.erase({ ids: [erased.id] }, { who: 'ann', reason: 'test' })
  assert.deepEqual(tags(), ['stays'])
  await worker.stop()
})

test('jobs with ids of another program are found by time, and tags of rows that it deletes find nothing', async () => {
  await using store = await opened()
  const { mill, handle } = store
  const { id } = await mill.enqueue(mail, 1, { tags: ['t'] })
  const foreign = ['f47ac10b-58cc-4372-a567-0e02b2c3d479', '00000000-58cc-4372-a567-0e02b2c3d479']
  const insert = handle.prepare(
    `INSERT INTO job_queue (id, type, payload, scheduled_at, created_at, updated_at) VALUES (?, 'mail', '{}', :at, :at, :at)`,
  )
  for (const one of foreign) insert.run({ at: new Date().toISOString() }, one)
  const found = async (text: string) => (await mill.search(text)).jobs.map((job) => job.id).sort()
  assert.deepEqual(await found('since:1h'), [id, ...foreign].sort())
  assert.deepEqual(await found('until:1h'), [])
  handle.prepare('DELETE FROM job_queue WHERE id = ?').run(id)
  assert.deepEqual(await found('tag:t'), [])
  assert.deepEqual((await mill.search('tag:t', { limit: 1 })).next, null)
})
