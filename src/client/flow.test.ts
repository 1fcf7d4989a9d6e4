import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { MemoryEngine } from '../engines/memory/index.ts'
import { OptionError, UnsupportedError } from '../errors.ts'
import { defineJob } from '../job/definition.ts'
import type { NewJob } from '../job/job.ts'
import { inOrder } from './flow.ts'
import { open } from './mill.ts'

const fetchPage = defineJob({ type: 'fetch', payload: z.object({ url: z.string() }), run: () => 'text' })
const count = defineJob({ type: 'count', payload: z.object({}), run: ({ after }) => after.length })

/** Remembers what it was given, call by call. */
class Recording extends MemoryEngine {
  readonly calls: (readonly NewJob[])[] = []
  override enqueue(jobs: readonly NewJob[], within?: object) {
    this.calls.push(jobs)
    return super.enqueue(jobs, within)
  }
}

test('the steps of a flow come to the engine in one call, each behind those that it waits for', async (t) => {
  const engine = new Recording()
  const mill = await open(engine)
  t.after(() => mill.close())
  const earlier = await mill.enqueue(fetchPage, { url: 'x' })
  const flow = await mill.enqueueFlow({
    merge: { job: count, payload: {}, after: ['a', earlier, 'b', 'a'], ifDead: 'run', priority: 2 },
    b: { job: fetchPage, payload: { url: 'b' }, after: 'a', key: 'b' },
    a: { job: fetchPage, payload: { url: 'a' } },
  })
  assert.equal(engine.calls.length, 2)
  assert.deepEqual(
    engine.calls[1]?.map(({ id, priority, key, after }) => ({ id, priority, key, after })),
    [
      { id: flow.a.id, priority: 5, key: null, after: null },
      { id: flow.b.id, priority: 5, key: 'b', after: { ids: [flow.a.id], ifDead: 'wait' } },
      { id: flow.merge.id, priority: 2, key: null, after: { ids: [flow.a.id, earlier.id, flow.b.id], ifDead: 'run' } },
    ],
  )
  await mill.work([fetchPage, count])
  const merged: number = await mill.result(flow.merge)
  assert.equal(merged, 3)
})

test('names, payloads and results of a flow are typed', async (t) => {
  const mill = await open('memory:')
  t.after(() => mill.close())
  // @ts-expect-error no step is called 'c'
  await assert.rejects(mill.enqueueFlow({ a: { job: count, payload: {} }, b: { job: count, payload: {}, after: 'c' } }))
  // @ts-expect-error the payload of 'fetch' has a url
  await assert.rejects(mill.enqueueFlow({ a: { job: fetchPage, payload: { uri: 'x' } } }))
  const flow = await mill.enqueueFlow({ a: { job: count, payload: {} } })
  // @ts-expect-error the result of 'count' is a number
  const wrong: Promise<string> = mill.result(flow.a, { timeout: 0 })
  await assert.rejects(wrong)
  assert.deepEqual((await mill.counts()).fetch, undefined)
})

test('an empty flow is no job, and a flow of one is one', async (t) => {
  const engine = new Recording()
  const mill = await open(engine)
  t.after(() => mill.close())
  assert.deepEqual(await mill.enqueueFlow({}), {})
  assert.deepEqual(await engine.counts(), {})
  const { only } = await mill.enqueueFlow({ only: { job: count, payload: {} } })
  assert.equal((await mill.job(only.id))?.after, null)
})

test('a flow is refused where the engine could not keep it whole', async (t) => {
  for (const lack of [{ dependencies: false }, { enqueueAtomic: false }]) {
    const engine = new Recording()
    const poor = Object.defineProperty(engine, 'capabilities', { value: { ...engine.capabilities, ...lack } })
    const mill = await open(poor)
    t.after(() => mill.close())
    await assert.rejects(mill.enqueueFlow({ a: { job: count, payload: {} } }), UnsupportedError)
    assert.equal(engine.calls.length, 0)
  }
})

test('a flow of several types is refused where each type is a store of its own; one of a single type is stored', async (t) => {
  const engine = new Recording()
  const apart = Object.defineProperty(engine, 'capabilities', { value: { ...engine.capabilities, scope: 'type' } })
  const mill = await open(apart)
  t.after(() => mill.close())
  await assert.rejects(
    mill.enqueueFlow({ a: { job: count, payload: {} }, b: { job: defineJob({ type: 'other' }), after: 'a' } }),
    (error) => error instanceof UnsupportedError && /the types 'count', 'other'/.test(error.message),
  )
  assert.equal(engine.calls.length, 0)
  await mill.enqueueFlow({ a: { job: count, payload: {} }, b: { job: count, payload: {}, after: 'a' } })
  assert.equal(engine.calls.length, 1)
})

test('steps that wait for each other are refused with the way around named', () => {
  const refused = (steps: Parameters<typeof inOrder>[0], text: RegExp): void =>
    assert.throws(
      () => inOrder(steps),
      (error) => error instanceof OptionError && text.test(error.message),
    )
  refused({ a: { after: 'a' } }, /'a' after 'a'/)
  refused(
    { x: { after: 'a' }, a: { after: 'b' }, b: { after: ['c', 'd'] }, c: {}, d: { after: 'a' } },
    /'a' after 'b' after 'd' after 'a'/,
  )
  refused({ a: { after: 'constructor' } }, /'a' comes after 'constructor', which is not a step/)
})

test('steps are sorted no more than they have to be', () => {
  assert.deepEqual(inOrder({ c: { after: 'b' }, a: {}, b: {} }), ['b', 'c', 'a'])
  assert.deepEqual(inOrder({ a: {}, b: { after: ['a'] }, c: { after: ['a', 'b'] } }), ['a', 'b', 'c'])
})
