import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { engines } from '../../conformance/engines/index.ts'
import type { CreateHarness, Harness } from '../../conformance/harness.ts'
import { open } from '../../src/client/mill.ts'
import { pausesOf } from '../../src/engine/capability-checks.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Lease, Outcome } from '../../src/engine/outcome.ts'
import { defineJob, type Explanation, explainJob, graphOf, type Mill } from '../../src/index.ts'

const TYPES = ['mail', 'bill'].map((type) => defineJob({ type, lease: '30s' }))
const [mail, bill] = TYPES
if (mail === undefined || bill === undefined) throw new Error('two definitions')

interface Scene {
  readonly mill: Mill
  readonly engine: Engine
  explain(id: string): Promise<Explanation>
  /** Claims what is ready of both types, as the worker `host:1:test`. */
  claim(): Promise<readonly Lease[]>
  settle(lease: Lease | undefined, outcome: Outcome): Promise<void>
  advance: Harness['advance']
}

async function sceneOn(t: TestContext, create: CreateHarness): Promise<Scene> {
  const { engine, clock, advance, destroy } = await create()
  t.after(destroy)
  const mill = await open(engine, { jobs: TYPES, clock })
  const types = TYPES.map(({ type, leaseMs }) => ({ type, leaseMs }))
  const consumer = await engine.consume({ types, worker: 'host:1:test' })
  return {
    mill,
    engine,
    advance,
    explain: (id) => explainJob(mill, id, { clock }),
    claim: () => consumer.claim({ max: 10, waitMs: 0, signal: new AbortController().signal }),
    settle: async (lease, outcome) => {
      assert.ok(lease)
      assert.deepEqual(await consumer.settle([{ lease, outcome }]), [])
    },
  }
}

const error = { name: 'Error', code: null, message: 'no route', stack: null }
const DONE: Outcome = { kind: 'complete', result: 'null', durationMs: 7 }

for (const [name, create] of Object.entries(engines).filter(([name]) => name !== 'kafka')) {
  describe(`a job is explained on ${name}`, { timeout: 600_000 }, () => {
    test('from its enqueuing to its end', async (t) => {
      const { explain, claim, settle, mill, advance } = await sceneOn(t, create)
      const { id } = await mill.enqueue(mail, {}, { delay: '10s', attempts: 2 })
      const delayed = await explain(id)
      assert.equal(delayed.because, 'delayed')
      assert.match(delayed.text, /^It is delayed until \S+Z \(in \d+s\), as enqueued\.$/)
      assert.equal(delayed.untilMs, (await mill.job(id))?.runAtMs)
      // Nobody has ever said that it works here.
      assert.match(delayed.also.join('\n'), /^No worker runs 'mail'\. Start one/)

      await advance(10_000)
      const [first] = await claim()
      const running = await explain(id)
      assert.equal(running.because, 'running')
      assert.match(
        running.text,
        /^It runs on host:1:test since \S+Z \(.* ago\), attempt 1 of 2; its lease holds until /,
      )

      await settle(first, { kind: 'retry', delayMs: 20_000, error })
      const retried = await explain(id)
      assert.equal(retried.because, 'delayed')
      assert.match(retried.text, /, its backoff after attempt 1 of 2, because of Error: no route\.$/)

      await advance(20_000)
      const [second] = await claim()
      await settle(second, { kind: 'dead', error })
      const dead = await explain(id)
      assert.equal(dead.because, 'dead')
      assert.match(dead.text, /at attempt 2 of 2, because of Error: no route\. Replay it to run it again\.$/)
    })

    test('when it is completed, cancelled or superseded', async (t) => {
      const { explain, claim, settle, mill } = await sceneOn(t, create)
      const done = await mill.enqueue(mail, {})
      const [lease] = await claim()
      await settle(lease, DONE)
      const completed = await explain(done.id)
      assert.deepEqual([completed.because, completed.also], ['completed', []])
      assert.match(completed.text, / by host:1:test, after 7 ms of work\.$/)

      const unwanted = await mill.enqueue(mail, {})
      await mill.cancel(unwanted.id, { who: 'ann', reason: 'sent twice' })
      const cancelled = await explain(unwanted.id)
      assert.equal(cancelled.because, 'cancelled')
      assert.match(cancelled.text, / by ann, "sent twice"\.$/)

      const older = await mill.enqueue(mail, {}, { latest: 'k' })
      const newer = await mill.enqueue(mail, {}, { latest: 'k' })
      const superseded = await explain(older.id)
      assert.equal(superseded.because, 'superseded')
      assert.deepEqual(superseded.jobs, [{ id: newer.id, type: 'mail', state: 'queued' }])
    })

    test('while other jobs hold it back', async (t) => {
      const { explain, claim, settle, mill } = await sceneOn(t, create)
      const first = await mill.enqueue(mail, {})
      const second = await mill.enqueue(bill, {}, { after: first })
      const third = await mill.enqueue(bill, {}, { after: [first, second], ifDead: 'die' })
      const waits = await explain(third.id)
      assert.equal(waits.because, 'waits-for-jobs')
      assert.match(waits.text, /^It waits for 2 of 2 jobs: .* If one of them dies, it dies too\.$/)
      assert.deepEqual(
        waits.jobs.map(({ id, state }) => [id, state]),
        [first, second].map(({ id }) => [id, 'queued']),
      )
      assert.deepEqual(await graphOf(mill, third.id), [
        { id: first.id, type: 'mail', state: 'queued', after: [] },
        { id: second.id, type: 'bill', state: 'queued', after: [first.id] },
      ])

      const [lease] = await claim()
      await settle(lease, { kind: 'dead', error })
      const stuck = await explain(second.id)
      assert.deepEqual(stuck.jobs, [{ id: first.id, type: 'mail', state: 'dead_letter' }])
      assert.match(stuck.text, /it waits until that one is replayed and completes\.$/)
      await mill.cancel(second.id)
      const doomed = await explain(third.id)
      assert.match(
        doomed.also.join('\n'),
        /When its turn comes it will die: it comes after 'bill' .*, which was cancelled/,
      )

      const older = await mill.enqueue(bill, {}, { latest: 'k', priority: 1 })
      const [held] = (await claim()).filter(({ job }) => job.id === older.id)
      assert.ok(held)
      const newer = await mill.enqueue(bill, {}, { latest: 'k' })
      const behind = await explain(newer.id)
      assert.equal(behind.because, 'older-version-runs')
      assert.deepEqual(behind.jobs, [{ id: older.id, type: 'bill', state: 'in_progress' }])
    })

    test('when its worker is gone', async (t) => {
      const { explain, claim, mill, advance } = await sceneOn(t, create)
      const { id } = await mill.enqueue(mail, {}, { attempts: 1 })
      assert.equal((await claim()).length, 1)
      await advance(31_000)
      const expired = await explain(id)
      assert.equal(expired.because, 'lease-expired')
      assert.match(
        expired.text,
        /^The lease of host:1:test on it .* A keeper recovers it.*; then it becomes a dead letter/,
      )
    })

    test('while its type is paused', async (t) => {
      const { explain, mill, engine } = await sceneOn(t, create)
      const { id } = await mill.enqueue(mail, {})
      await pausesOf(engine).pause('mail', { who: 'ann', reason: 'the server moves' })
      const paused = await explain(id)
      assert.equal(paused.because, 'paused')
      assert.match(paused.text, /^Its type 'mail' was paused by ann at .*, "the server moves"\. It starts when/)
      assert.equal(paused.untilMs, null)
      const other = await mill.enqueue(bill, {})
      assert.notEqual((await explain(other.id)).because, 'paused')
    })
  })
}
