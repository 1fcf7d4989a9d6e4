import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { open } from '../client/mill.ts'
import { MemoryEngine } from '../engines/memory/index.ts'
import { defineJob } from '../job/definition.ts'
import type { JobView } from '../job/job.ts'
import { TestClock } from '../testing/test-clock.ts'

const first = defineJob({ type: 'first', run: () => 1 })

/** A memory engine whose look-ups pass through `change`. */
async function staged(t: { after(run: () => Promise<void>): void }, change: (view: JobView | null) => JobView | null) {
  const clock = new TestClock()
  const engine = new MemoryEngine({ clock })
  const find = engine.inspector.find.bind(engine.inspector)
  engine.inspector.find = async (ids) => (await find(ids)).map(change)
  const mill = await open(engine, { clock, random: () => 0 })
  t.after(async () => {
    const closed = mill.close()
    await clock.advance('1m')
    await closed
  })
  return { mill, clock }
}

async function turns(): Promise<void> {
  for (let left = 30; left > 0; left -= 1) await turn()
}

test('a store that cannot be asked for predecessors costs no attempt, and is told of', async (t) => {
  let isBroken = true
  const { mill, clock } = await staged(t, (view) => {
    if (isBroken) throw new Error('no answer')
    return view
  })
  const ran: number[] = []
  const second = defineJob({
    type: 'second',
    attempts: 1,
    run: ({ after, job }) => ran.push(job.attempt, after.length),
  })
  const during: string[] = []
  mill.events.on('worker.error', (event) => during.push(event.during))
  const receipt = await mill.enqueue(first, null)
  await mill.enqueue(second, null, { after: receipt })
  await mill.work([first, second])
  await turns()
  assert.deepEqual([ran, during], [[], ['predecessors']])
  isBroken = false
  await clock.advance(1_000)
  await turns()
  assert.deepEqual(ran, [1, 1])
})

test('a job whose predecessor is under way again is given back, and its handler does not run', async (t) => {
  let isReplayed = true
  const { mill, clock } = await staged(t, (view) =>
    view !== null && view.type === 'first' && isReplayed ? { ...view, state: 'in_progress' } : view,
  )
  const ran: number[] = []
  const second = defineJob({ type: 'second', run: ({ job }) => ran.push(job.attempt) })
  const receipt = await mill.enqueue(first, null)
  const { id } = await mill.enqueue(second, null, { after: receipt, ifDead: 'die' })
  await mill.work([first, second])
  await turns()
  const waits = await mill.job(id)
  assert.deepEqual([ran, waits?.state, waits?.attempt], [[], 'queued', 0])
  isReplayed = false
  await clock.advance(1_000)
  await turns()
  assert.deepEqual(ran, [1])
})
