import assert from 'node:assert/strict'
import type { DeadLetters, Engine } from '../../../src/engine/engine.ts'
import type { CaseFile } from '../../case.ts'
import { cancellation, deadLetters, dependencies, latest, need } from '../../needs.ts'
import { complete, dead, idsOf, release, retry } from '../../stage.ts'
import { after, claimable, settleJob, threeAfter } from '../../succession.ts'

const by = { who: 'suite', reason: 'test' }

function desk(engine: Engine): DeadLetters {
  assert.ok(engine.deadLetters, 'the engine declares dead letters and has none')
  return engine.deadLetters
}

export const bereft: CaseFile = {
  level: 'port',
  concept: 'Dependencies whose first does not complete',
  cases: [
    {
      // X034 X035
      name: 'when the first dies those that run or die with it are handed out, and those that wait go on after its replay',
      guarantees: ['I9'],
      ...need(dependencies, deadLetters),
      async run(stage) {
        const first = await stage.put({ priority: 1 })
        const ids = await threeAfter(stage, first.id)
        const consumer = await stage.consume()
        await settleJob(stage, consumer, first.id, dead)
        assert.deepEqual(await claimable(stage, consumer), [ids.run, ids.die].sort())
        assert.deepEqual(await desk(stage.engine).requeue([first.id], by), [true])
        await settleJob(stage, consumer, first.id, retry())
        await settleJob(stage, consumer, first.id, complete)
        assert.deepEqual(await claimable(stage, consumer), [ids.wait])
      },
    },
    {
      name: 'a job after one that is dead already waits, or is handed out, by its own policy',
      guarantees: ['I9'],
      ...need(dependencies, deadLetters),
      async run(stage) {
        const first = await stage.put()
        const consumer = await stage.consume()
        await settleJob(stage, consumer, first.id, dead)
        const ids = await threeAfter(stage, first.id)
        assert.deepEqual(await claimable(stage, consumer), [ids.run, ids.die].sort())
        await desk(stage.engine).requeue([first.id], by)
        await settleJob(stage, consumer, first.id, complete)
        assert.deepEqual(await claimable(stage, consumer), [ids.wait])
      },
    },
    {
      name: 'those that a death let go wait again if the first is replayed before they start',
      guarantees: ['I9'],
      ...need(dependencies, deadLetters),
      async run(stage) {
        const first = await stage.put()
        const consumer = await stage.consume()
        const { run, die, wait } = await threeAfter(stage, first.id)
        await settleJob(stage, consumer, first.id, dead)
        await stage.expectCounts({ ready: 2, delayed: 1, dead: 1 })
        await desk(stage.engine).requeue([first.id], by)
        await stage.expectCounts({ ready: 1, delayed: 3 })
        await settleJob(stage, consumer, first.id, complete)
        assert.deepEqual(await claimable(stage, consumer), [run, die, wait].sort())
      },
    },
    {
      name: 'a start that is given back waits if the first was replayed meanwhile',
      guarantees: ['I9'],
      ...need(dependencies, deadLetters),
      async run(stage) {
        const first = await stage.put()
        const second = await stage.put(after([first.id], 'die'))
        const consumer = await stage.consume()
        await settleJob(stage, consumer, first.id, dead)
        const lease = await stage.one(consumer)
        await desk(stage.engine).requeue([first.id], by)
        await stage.settle(consumer, lease, release())
        await settleJob(stage, consumer, first.id, complete)
        const again = await stage.one(consumer)
        assert.deepEqual([again.job.id, again.attempt], [second.id, 1])
      },
    },
    {
      name: 'a job that died with the first waits for it again when both are replayed, in either order',
      guarantees: ['I9'],
      ...need(dependencies, deadLetters),
      async run(stage) {
        const consumer = await stage.consume()
        for (const order of ['first', 'second'] as const) {
          const first = await stage.put()
          const second = await stage.put(after([first.id], 'die'))
          await settleJob(stage, consumer, first.id, dead)
          await settleJob(stage, consumer, second.id, dead)
          const ids = order === 'first' ? [first.id, second.id] : [second.id, first.id]
          for (const id of ids) assert.deepEqual(await desk(stage.engine).requeue([id], by), [true])
          await settleJob(stage, consumer, first.id, complete)
          await settleJob(stage, consumer, second.id, complete)
        }
        await stage.expectCounts({ completed: 4 })
      },
    },
    {
      name: 'a job that is replayed alone is handed out though what it died with is still dead',
      guarantees: ['I9'],
      ...need(dependencies, deadLetters),
      async run(stage) {
        const first = await stage.put()
        const second = await stage.put(after([first.id], 'die'))
        const consumer = await stage.consume()
        await settleJob(stage, consumer, first.id, dead)
        await settleJob(stage, consumer, second.id, dead)
        await desk(stage.engine).requeue([second.id], by)
        assert.deepEqual(await claimable(stage, consumer), [second.id])
      },
    },
    {
      name: 'cancelling the first, waiting or running, lets all that come after it go',
      guarantees: ['I1'],
      ...need(dependencies, cancellation),
      async run(stage) {
        const consumer = await stage.consume()
        for (const isRunning of [false, true]) {
          const first = await stage.put()
          const ids = await threeAfter(stage, first.id)
          if (isRunning) await stage.one(consumer)
          assert.equal(await stage.engine.controls?.cancel(first.id, by), true)
          const taken = await stage.take(consumer, 10)
          assert.deepEqual([...idsOf(taken)].sort(), Object.values(ids).sort())
        }
      },
    },
    {
      name: 'a job that has to wait can be cancelled, and does not hold back or come back',
      guarantees: ['I1'],
      ...need(dependencies, cancellation),
      async run(stage) {
        const first = await stage.put()
        const second = await stage.put(after([first.id]))
        const third = await stage.put(after([second.id]))
        assert.equal(await stage.engine.controls?.cancel(second.id, by), true)
        const consumer = await stage.consume()
        assert.deepEqual(await claimable(stage, consumer), [first.id, third.id].sort())
        await stage.expectCounts({ inProgress: 2 })
      },
    },
    {
      name: 'discarding or purging a dead first lets those go that waited for its replay',
      guarantees: ['I9'],
      ...need(dependencies, deadLetters),
      async run(stage) {
        const consumer = await stage.consume()
        const letters = desk(stage.engine)
        const acts = [async (id: string) => letters.discard([id], by), async (id: string) => letters.remove([id], by)]
        for (const act of acts) {
          const first = await stage.put()
          const second = await stage.put(after([first.id]))
          await settleJob(stage, consumer, first.id, dead)
          await stage.none(consumer, 'a dead letter may still be replayed')
          const waiting = stage.take(consumer, 1, { waitMs: 2_000 })
          assert.deepEqual(await act(first.id), [true])
          assert.deepEqual(idsOf(await stage.promptly(waiting, 'the claim')), [second.id])
        }
      },
    },
    {
      name: 'undoing a discard makes those that waited for it wait again',
      guarantees: ['I9'],
      ...need(dependencies, deadLetters),
      async run(stage) {
        const first = await stage.put()
        const second = await stage.put(after([first.id]))
        const consumer = await stage.consume()
        await settleJob(stage, consumer, first.id, dead)
        await desk(stage.engine).discard([first.id], by)
        await stage.expectCounts({ ready: 1 })
        await desk(stage.engine).undiscard([first.id], by)
        await stage.expectCounts({ delayed: 1, dead: 1 })
        await desk(stage.engine).requeue([first.id], by)
        await settleJob(stage, consumer, first.id, complete)
        await settleJob(stage, consumer, second.id, complete)
      },
    },
    {
      name: 'a newer version of a latest key lets those go that came after the superseded one, waiting or running',
      guarantees: ['I4'],
      ...need(dependencies, latest),
      async run(stage) {
        const version = { latest: { key: 'k', seq: null } }
        const old = await stage.put(version)
        const second = await stage.put(after([old.id]))
        const fresh = await stage.put(version)
        const consumer = await stage.consume()
        const leases = await stage.take(consumer, 5)
        assert.deepEqual([...idsOf(leases)].sort(), [second.id, fresh.id].sort())
        const third = await stage.put(after([fresh.id]))
        const newest = await stage.put(version)
        await stage.none(consumer, 'both wait for the version that runs')
        const running = leases.find(({ job }) => job.id === fresh.id)
        assert.ok(running)
        await stage.settle(consumer, running, retry())
        assert.deepEqual(await claimable(stage, consumer), [third.id, newest.id].sort())
      },
    },
  ],
}
