import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Line } from './history.ts'
import { judgeKafka } from './kafka-history.ts'

/** A start of one record by a process in a generation of the group, and its lines. */
function run(pid: number, generation: number, times: Partial<Record<Line['what'], number>>): readonly Line[] {
  const about = { id: 'j', key: null, attempt: 1, pid, token: `member-${pid}/${generation}/chaos/0/7/${pid}` }
  return Object.entries(times).map(([what, atMs]): Line => ({ ...about, what: whatOf(what), atMs }))
}

function whatOf(text: string): Line['what'] {
  const what = (['start', 'done', 'accepted', 'lost'] as const).find((known) => known === text)
  assert.ok(what !== undefined)
  return what
}

test('a settle of a lease that a later generation has taken is late', () => {
  const lines = [
    ...run(1, 8, { start: 0, done: 60, accepted: 61 }),
    ...run(2, 9, { start: 50, done: 90, accepted: 91 }),
  ]
  assert.match(judgeKafka(['j'], lines, []).violations.join(), /a settle of j .* was accepted 10 ms after/)
})

test('the owner is not late when a member of an earlier generation starts what it was handed before', () => {
  const lines = [...run(1, 8, { start: 50, lost: 70 }), ...run(2, 10, { start: 0, done: 60, accepted: 61 })]
  assert.deepEqual(judgeKafka(['j'], lines, []).violations, [])
})
