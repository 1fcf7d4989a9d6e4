import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Mill } from '../client/mill.ts'
import type { ClaimRequest, Consumer, Engine } from '../engine/engine.ts'
import { LimitStore } from '../engine/limits.ts'
import { Pauses } from '../engine/pauses.ts'
import type { RecordKind } from '../engine/records.ts'
import { MemoryEngine } from '../engines/memory/index.ts'
import { defineJob } from '../job/definition.ts'
import { TestClock } from '../testing/test-clock.ts'
import { PauseWatch, type TypeOrders } from './pause-watch.ts'

/** Pauses that do not tell of a change, as in a database, and that can be away. */
class StoredPauses implements Pick<Pauses, 'list'> {
  types: string[] = []
  looks = 0
  isAway = false
  answered: Promise<void> = Promise.resolve()

  async list() {
    this.looks += 1
    await this.answered
    if (this.isAway) throw new Error('away')
    return this.types.map((type) => ({ type, who: 'w', reason: 'r', sinceMs: 0 }))
  }
}

function watching() {
  const clock = new TestClock()
  const pauses = new StoredPauses()
  const heard: string[][] = []
  const errors: unknown[] = []
  const watch = new PauseWatch({
    clock,
    pauses,
    onChange: ({ paused }) => heard.push([...paused]),
    onError: (error) => errors.push(error),
  })
  return { clock, pauses, heard, errors, watch }
}

test('it looks once a second, and tells of changes only', async () => {
  const { clock, pauses, heard, watch } = watching()
  pauses.types = ['a']
  await watch.start()
  assert.deepEqual(heard, [['a']])
  await clock.advance('3s')
  assert.equal(pauses.looks, 4)
  assert.equal(heard.length, 1)
  pauses.types = ['b']
  await clock.advance('1s')
  pauses.types = []
  await clock.advance('1s')
  assert.deepEqual(heard, [['a'], ['b'], []])
  watch.close()
  assert.equal(clock.waiting, 0)
})

test('what was last heard stays in force while the store is away, and trouble is told once', async () => {
  const { clock, pauses, heard, errors, watch } = watching()
  pauses.types = ['a']
  await watch.start()
  pauses.isAway = true
  await clock.advance('5s')
  assert.deepEqual(heard, [['a']])
  assert.equal(errors.length, 1)
  Object.assign(pauses, { isAway: false, types: [] })
  await clock.advance('1s')
  assert.deepEqual(heard, [['a'], []])
  watch.close()
})

test('nothing is heard after the end, also of a look that was under way', async () => {
  const { clock, pauses, heard, watch } = watching()
  await watch.start()
  const answer = Promise.withResolvers<void>()
  Object.assign(pauses, { types: ['a'], answered: answer.promise })
  await clock.advance('1s')
  assert.equal(pauses.looks, 2)
  watch.close()
  answer.resolve()
  await clock.advance('5s')
  assert.deepEqual(heard, [])
  assert.equal(clock.waiting, 0)
})

/** A memory engine whose consumers claim in their own way. */
function claiming(clock: TestClock, claim: (request: ClaimRequest, right: Consumer) => ReturnType<Consumer['claim']>) {
  const right = new MemoryEngine({ clock })
  const consume: Engine['consume'] = async (subscription) => {
    const consumer = await right.consume(subscription)
    return new Proxy(consumer, {
      get(target, name) {
        if (name === 'claim') return (request: ClaimRequest) => claim(request, target)
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  }
  return new Proxy<Engine>(right, {
    get: (target, name) => {
      if (name === 'consume') return consume
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

test('what a claim brings after its type was paused is given back, and no attempt is used', async () => {
  const clock = new TestClock()
  const reached = Promise.withResolvers<void>()
  const brought = Promise.withResolvers<void>()
  // As if the claim had been on its way to a server when the pause was heard.
  const engine = claiming(clock, async (request, right) => {
    if (request.perType !== undefined) return right.claim(request)
    reached.resolve()
    await brought.promise
    return right.claim({ ...request, signal: new AbortController().signal })
  })
  const mill = new Mill(engine, { clock })
  const mail = defineJob({ type: 'mail', run: () => assert.fail('a paused job has started') })
  const { id } = await mill.enqueue(mail, null)
  const worker = await mill.work([mail])
  await reached.promise
  await mill.pause('mail')
  const settled = mill.events.next('job.settled')
  brought.resolve()
  const { outcome } = await settled
  assert.deepEqual(outcome, { kind: 'release', delayMs: 0, reason: 'paused' })
  const view = await mill.job(id)
  assert.deepEqual([view?.state, view?.attempt], ['queued', 0])
  await worker.stop()
  await mill.close()
})

test('what was claimed ahead and has not started is given back at once; what runs goes on', async () => {
  const clock = new TestClock()
  // One slot and three jobs: two of them wait for the slot.
  const engine = claiming(clock, (request, right) =>
    right.claim({ ...request, max: request.max === 0 ? 0 : Math.max(request.max, 3) }),
  )
  const mill = new Mill(engine, { clock })
  const gate = Promise.withResolvers<void>()
  const ran: unknown[] = []
  const mail = defineJob({
    type: 'mail',
    timeout: '1h',
    run: async ({ payload }) => {
      ran.push(payload)
      await gate.promise
    },
  })
  await mill.enqueueMany(mail, [1, 2, 3])
  const reasons: string[] = []
  const released = new Promise<void>((resolve) => {
    mill.events.on('job.settled', ({ outcome }) => {
      reasons.push(outcome.kind === 'release' ? outcome.reason : outcome.kind)
      if (reasons.length === 2) resolve()
    })
  })
  const started = mill.events.next('job.started')
  const worker = await mill.work([mail], { concurrency: 1 })
  await started
  await mill.pause('mail')
  await released
  assert.deepEqual(reasons, ['paused', 'paused'])
  assert.deepEqual(await mill.counts(), { mail: { ready: 2, delayed: 0, inProgress: 1, completed: 0, dead: 0 } })
  const last = mill.events.next('job.settled')
  gate.resolve()
  assert.equal((await last).outcome.kind, 'complete')
  await clock.advance('1m')
  assert.deepEqual(ran, [1])
  const ended = new Promise<void>((resolve) => {
    mill.events.on('job.settled', () => ran.length === 3 && resolve())
  })
  await mill.resume('mail')
  await ended
  await worker.stop()
  await mill.close()
  assert.equal(clock.waiting, 0)
})

test('limits that were changed are heard by the same look as pauses, each change once', async () => {
  const clock = new TestClock()
  const { records } = new MemoryEngine({ clock })
  const { onChange: _, ...unheard } = records
  const limits = new LimitStore(unheard)
  let looks = 0
  const list = (kind: RecordKind) => {
    looks += 1
    return unheard.list(kind)
  }
  const pauses = new Pauses({ ...unheard, list })
  const heard: unknown[] = []
  const onChange = ({ limits: set }: TypeOrders) => heard.push(Object.fromEntries(set))
  const watch = new PauseWatch({ clock, pauses, onChange, onError: assert.ifError })
  await watch.start()
  await limits.set('a', { concurrency: 2 }, { who: 'ann', reason: 'r' })
  await clock.advance('2s')
  await limits.reset('a')
  await clock.advance('1s')
  assert.deepEqual(heard, [{ a: { concurrency: 2 } }, {}])
  assert.equal(looks, 4)
  watch.close()
})
