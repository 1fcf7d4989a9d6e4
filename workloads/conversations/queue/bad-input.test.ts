import assert from 'node:assert/strict'
import { mkdtempSync, statSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { tempFiles } from '../../../test/fixtures/temp-files.ts'
import type { CreateJob } from './job.ts'
import { JobQueueRepository } from './job-queue-repository.ts'
import { JobWorker } from './job-worker.ts'

const files = tempFiles()
const INVALID = { code: 'ERR_OPTION_INVALID' }

test('a type that no worker could have is refused, and nothing is stored', () => {
  const queue = new JobQueueRepository(new DatabaseSync(':memory:'))
  for (const type of ['', ' ', 'a b', 'constructor', 'x'.repeat(200), 5, null]) {
    // What the types refuse is refused at runtime too.
    assert.throws(() => queue.create({ type, payload: {} } as CreateJob), INVALID)
  }
  assert.throws(() => queue.enqueueJob('', {}), INVALID)
  assert.deepEqual(queue.findByStatus('queued'), [])
})

test('a limit below one or above 10 000 is refused: SQLite would list everything', () => {
  const queue = new JobQueueRepository(new DatabaseSync(':memory:'))
  for (const limit of [0, -1, 1.5, Number.NaN, 10_001]) {
    assert.throws(() => queue.findByStatus('queued', limit), INVALID)
    assert.throws(() => queue.findByType('greet', limit), INVALID)
    assert.throws(() => queue.getDeadLetterJobs(limit), INVALID)
  }
})

test('an empty MILLRACE_ENGINE is none: the pipeline opens its default file', async (t) => {
  const home = mkdtempSync(path.join(files.folder, 'home-'))
  const { HOME, MILLRACE_ENGINE, MILLRACE_CONVERSATIONS_CONFIG } = process.env
  t.after(() => {
    for (const [name, value] of Object.entries({ HOME, MILLRACE_ENGINE, MILLRACE_CONVERSATIONS_CONFIG })) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  })
  Object.assign(process.env, { HOME: home, MILLRACE_ENGINE: '' })
  delete process.env.MILLRACE_CONVERSATIONS_CONFIG
  const worker = new JobWorker({ signals: false })
  await worker.start()
  await worker.shutdown()
  const { mode } = statSync(path.join(home, '.millrace', 'conversations.db'))
  assert.equal(mode & 0o777, 0o600)
})
