import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobSummary } from '../../api/shapes.ts'
import { mergeJobs } from './merge.ts'

function job(id: string, state: JobSummary['state'] = 'queued'): JobSummary {
  return {
    id,
    type: 'mail',
    state,
    priority: 5,
    attempt: 0,
    attempts: 3,
    replays: 0,
    key: null,
    latestKey: null,
    tenant: null,
    tags: [],
    progress: null,
    error: null,
    leaseOwner: null,
    leaseUntilMs: null,
    createdAtMs: 0,
    runAtMs: 0,
    updatedAtMs: 0,
    startedAtMs: null,
    completedAtMs: null,
    durationMs: null,
  }
}

test('rows stay where they are and show what is true now', () => {
  const merged = mergeJobs([job('c'), job('b'), job('a')], [job('d'), job('c'), job('b', 'completed')])
  assert.deepEqual(
    merged.rows.map(({ id, state }) => [id, state]),
    [
      ['c', 'queued'],
      ['b', 'completed'],
      ['a', 'queued'],
    ],
  )
  assert.equal(merged.newer, 1)
  assert.deepEqual(merged.absent, ['a'])
})

test('jobs that move up from the next page are not newer', () => {
  assert.equal(mergeJobs([job('c'), job('b')], [job('c'), job('a')]).newer, 0)
})

test('a page of which nothing is left is all newer', () => {
  assert.equal(mergeJobs([job('b'), job('a')], [job('d'), job('c')]).newer, 2)
})
