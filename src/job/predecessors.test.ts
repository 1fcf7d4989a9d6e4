import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OptionError } from '../errors.ts'
import type { JobView, Predecessors } from './job.ts'
import { checkAfter, PREDECESSORS_MAX, readinessOf, readPredecessors, redirect } from './predecessors.ts'

const refused = (options: Parameters<typeof checkAfter>[0], text: RegExp): void =>
  assert.throws(
    () => checkAfter(options),
    (error) => error instanceof OptionError && text.test(error.message),
  )

test('one or many jobs come first, by id or receipt, each once', () => {
  assert.equal(checkAfter({}), null)
  assert.equal(checkAfter({ after: [] }), null)
  assert.deepEqual(checkAfter({ after: 'a' }), { ids: ['a'], ifDead: 'wait' })
  assert.deepEqual(checkAfter({ after: { id: 'a' }, ifDead: 'die' }), { ids: ['a'], ifDead: 'die' })
  assert.deepEqual(checkAfter({ after: ['b', { id: 'a' }, 'b'], ifDead: 'run' }), { ids: ['b', 'a'], ifDead: 'run' })
})

test('what makes no sense is refused', () => {
  refused({ after: 'a', latest: 'k' }, /'after' and 'latest' contradict/)
  refused({ ifDead: 'run' }, /add 'after'/)
  refused({ after: '' }, /ids or receipts/)
  refused({ after: ['a', ''] }, /ids or receipts/)
  refused({ after: Array.from({ length: PREDECESSORS_MAX + 1 }, (_, index) => `j${index}`) }, /1001 jobs, at most 1000/)
  const wrong: unknown = { after: 'a', ifDead: 'panic' }
  refused(wrong as Parameters<typeof checkAfter>[0], /'wait', 'run' or 'die'/)
})

test('a duplicate is waited for under the id that it is known by', () => {
  const duplicates = new Map([['b', 'a']])
  assert.deepEqual(redirect({ ids: ['a', 'b', 'c'], ifDead: 'run' }, duplicates), { ids: ['a', 'c'], ifDead: 'run' })
})

type Fate = 'completed' | 'dead' | 'cancelled' | 'superseded' | 'discarded' | 'removed' | 'queued' | 'in_progress'

function viewOf(fate: Fate): JobView | null {
  if (fate === 'removed') return null
  // Only these fields are read.
  return {
    type: 'fetch',
    state: fate === 'dead' ? 'dead_letter' : fate,
    result: fate === 'completed' ? { n: 1 } : null,
    error: fate === 'dead' ? { name: 'Error', code: null, message: 'boom', stack: null } : null,
  } as JobView
}

const turn = (ifDead: Predecessors['ifDead'], ...fates: Fate[]) =>
  readinessOf({ ids: fates.map((_, index) => `job-${index}`), ifDead }, fates.map(viewOf))

test('what becomes of a job, by what became of those before it', () => {
  const table: readonly (readonly [Fate, wait: string, run: string, die: string])[] = [
    ['completed', 'run', 'run', 'run'],
    ['dead', 'wait', 'run', 'die'],
    ['cancelled', 'die', 'run', 'die'],
    ['superseded', 'die', 'run', 'die'],
    ['discarded', 'die', 'run', 'die'],
    ['removed', 'die', 'run', 'die'],
    ['queued', 'wait', 'wait', 'wait'],
    ['in_progress', 'wait', 'wait', 'wait'],
  ]
  for (const [fate, wait, run, die] of table) {
    const kinds = (['wait', 'run', 'die'] as const).map((ifDead) => turn(ifDead, 'completed', fate).kind)
    assert.deepEqual(kinds, [wait, run, die], fate)
  }
})

test('a handler is given all of them in order, with results and errors', () => {
  const taken = turn('run', 'dead', 'completed', 'removed')
  assert.equal(taken.kind, 'run')
  assert.deepEqual(taken.kind === 'run' && taken.after, [
    {
      id: 'job-0',
      type: 'fetch',
      state: 'dead',
      result: null,
      error: { name: 'Error', code: null, message: 'boom', stack: null },
    },
    { id: 'job-1', type: 'fetch', state: 'completed', result: { n: 1 }, error: null },
    { id: 'job-2', type: null, state: 'removed', result: null, error: null },
  ])
})

test('the error names the one that will not complete and says what to do', () => {
  const dead = turn('die', 'completed', 'dead')
  assert.ok(dead.kind === 'die')
  assert.equal(dead.error.code, 'ERR_PREDECESSOR_DEAD')
  assert.match(dead.error.message, /'fetch' job-1, which is a dead letter; replay that one first/)
  const removed = turn('wait', 'removed')
  assert.ok(removed.kind === 'die')
  assert.match(removed.error.message, /job-0, which was removed/)
  // Waiting for a replay of one is no use when another is gone for good.
  assert.equal(turn('wait', 'dead', 'cancelled').kind, 'die')
})

test('stored predecessors of another shape are as good as absent', () => {
  for (const odd of [null, 7, 'x', [], {}, { ids: 7 }, { ids: [1] }, { ids: [] }]) {
    assert.equal(readPredecessors(odd), null, JSON.stringify(odd))
  }
  assert.deepEqual(readPredecessors({ ids: ['a'], ifDead: 'eat' }), { ids: ['a'], ifDead: 'wait' })
  assert.deepEqual(readPredecessors({ ids: ['a'], ifDead: 'run' }), { ids: ['a'], ifDead: 'run' })
})
