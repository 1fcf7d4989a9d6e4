import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobDetail } from '../../api/shapes.ts'
import { enqueueCommand } from './enqueue-command.ts'

const job = (parts: Partial<JobDetail>): JobDetail =>
  ({
    type: 'greet',
    payload: { n: 1 },
    priority: 5,
    attempts: 3,
    tenant: null,
    tags: [],
    options: null,
    ...parts,
  }) as JobDetail

test('a job is given as the command that enqueues one like it', () => {
  assert.equal(enqueueCommand(job({})), `millrace enqueue greet '{"n":1}' --priority 5 --attempts 3`)
  const full = job({ tenant: { orgId: 'acme', workspaceId: 'w' }, tags: ['a b'], options: { name: 'by hand' } })
  assert.equal(
    enqueueCommand(full),
    `millrace enqueue greet '{"n":1}' --name 'by hand' --priority 5 --attempts 3 --tenant acme/w --tag 'a b'`,
  )
})

test('what the payload contains stays one word of the shell', () => {
  assert.equal(
    enqueueCommand(job({ payload: `it's $HOME` })),
    `millrace enqueue greet '"it'\\''s $HOME"' --priority 5 --attempts 3`,
  )
})
