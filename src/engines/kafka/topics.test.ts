import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobTopicsOf } from './topics.ts'

const desk = 'acme.dlq'
const existing = new Set(['acme.pay', 'acme.pay.dlq', 'acme.dlq-states', 'acme.dlq-archive', 'other', 'read'])

test('with a prefix all topics that have it are for jobs, but not those of dead letters and of their desk', () => {
  assert.deepEqual(jobTopicsOf(existing, { prefix: 'acme.', desk, known: [], committed: [] }), ['acme.pay'])
})

test('without a prefix those that the group has read, or that this process has used, are', () => {
  const committed = [{ topic: 'read' }, { topic: 'gone' }]
  const known = ['acme.pay', 'acme.pay.dlq', 'acme.dlq-states', 'read']
  assert.deepEqual(jobTopicsOf(existing, { prefix: '', desk, known, committed }), ['acme.pay', 'read'])
})
