import assert from 'node:assert/strict'
import { retentionOf } from '../../../src/engine/capability-checks.ts'
import type { Lease, Outcome } from '../../../src/engine/outcome.ts'
import type { RetentionRule, SweepStep } from '../../../src/engine/retention.ts'
import type { CaseFile } from '../../case.ts'
import { cancellation, deadLetters, inspection, need, retention } from '../../needs.ts'
import { boom, complete, dead, never, retry, type Stage } from '../../stage.ts'

const DAY_MS = 86_400_000
const done = { kind: 'complete', result: '1', durationMs: 1 } as const

/** Runs a job to its end and returns its id. */
async function finish(stage: Stage, outcome: Outcome, fields: Parameters<Stage['put']>[0] = {}): Promise<string> {
  const { id, type } = await stage.put(fields)
  const consumer = await stage.consume({ types: [type] })
  await stage.settle(consumer, await stage.one(consumer), outcome)
  await consumer.close()
  return id
}

/** Sweeps to the end and returns how many went. */
async function sweepAll(
  stage: Stage,
  rules: readonly RetentionRule[],
  step: Partial<SweepStep> & { readonly max?: number } = {},
): Promise<number> {
  let removed = 0
  let from: string | null = null
  for (let steps = 0; steps < 100; steps += 1) {
    const sweep = await retentionOf(stage.engine).sweep(rules, { max: 100, ...step, from })
    removed += sweep.removed
    from = sweep.next
    if (from === null) return removed
  }
  return assert.fail('the sweep does not come to an end')
}

const stored = async (stage: Stage, ids: readonly string[]): Promise<readonly boolean[]> =>
  ((await stage.engine.inspector?.find(ids)) ?? []).map((job) => job !== null)

const purged = async (stage: Stage) =>
  (await stage.engine.deadLetters?.audit({ limit: 100, action: 'purge' }))?.map(({ who, jobId }) => [who, jobId])

export const retaining: CaseFile = {
  level: 'port',
  concept: 'Retention',
  cases: [
    {
      // B167: what is eight days old goes, what is six days old stays, and so do dead letters.
      name: 'a sweep removes what was completed before the rule says, with its history, and nothing else',
      guarantees: ['I1', 'I9'],
      ...need(retention, inspection),
      async run(stage) {
        const eight = await finish(stage, complete)
        const letter = await finish(stage, dead)
        await stage.harness.advance(2 * DAY_MS)
        const six = await finish(stage, complete)
        await stage.harness.advance(6 * DAY_MS)
        const beforeMs = stage.nowMs - 7 * DAY_MS
        assert.equal(await sweepAll(stage, [{ what: 'completed', beforeMs }]), 1)
        assert.deepEqual(await stored(stage, [eight, six, letter]), [false, true, true])
        assert.deepEqual(await stage.engine.inspector?.history(eight), [])
        await stage.expectCounts({ completed: 1, dead: 1 })
      },
    },
    {
      name: 'a job that finished at the very time of the rule stays, and one finished a moment before goes',
      guarantees: ['I1'],
      ...need(retention, inspection),
      async run(stage) {
        const id = await finish(stage, complete)
        const { completedAtMs } = await stage.view(id)
        assert.equal(await sweepAll(stage, [{ what: 'completed', beforeMs: completedAtMs }]), 0)
        assert.equal(await sweepAll(stage, [{ what: 'completed', beforeMs: (completedAtMs ?? 0) + 1 }]), 1)
        await stage.expectCounts({})
      },
    },
    {
      name: 'a rule that names a type goes before one that does not, and may keep all of it',
      guarantees: ['I1'],
      ...need(retention, inspection),
      async run(stage) {
        const [kept, own, other] = [`${stage.type}-kept`, `${stage.type}-own`, `${stage.type}-other`]
        const ids = [
          await finish(stage, complete, { type: kept }),
          await finish(stage, complete, { type: own }),
          await finish(stage, complete, { type: other }),
        ]
        const later = stage.nowMs + 1_000
        const rules: readonly RetentionRule[] = [
          { what: 'completed', beforeMs: later },
          { what: 'completed', type: kept, beforeMs: null },
          { what: 'completed', type: own, beforeMs: stage.nowMs - 1_000 },
          { what: 'dead', type: other, beforeMs: null },
        ]
        assert.equal(await sweepAll(stage, rules), 1)
        assert.deepEqual(await stored(stage, ids), [true, true, false])
      },
    },
    {
      name: 'no rule ever removes a job that may still run',
      guarantees: ['I1', 'I2'],
      ...need(retention, cancellation),
      async run(stage) {
        const consumer = await stage.consume()
        await stage.put()
        const running = await stage.one(consumer)
        await stage.put()
        await stage.settle(consumer, await stage.one(consumer), retry(0))
        const cancelled = await stage.put()
        await stage.engine.controls?.cancel(cancelled.id, { who: 'suite', reason: 'test' })
        const beforeMs = stage.nowMs + DAY_MS
        const rules: readonly RetentionRule[] = [
          { what: 'completed', beforeMs },
          { what: 'ended', beforeMs },
          { what: 'dead', beforeMs },
        ]
        assert.equal(await sweepAll(stage, rules), 1, 'the cancelled one and no other')
        await stage.settle(consumer, running, complete)
        await stage.expectCounts({ ready: 1, completed: 1 })
      },
    },
    {
      // X124 X013
      name: 'a dead letter removed by a rule leaves an entry in the audit, and so does a discarded one',
      guarantees: ['I9'],
      ...need(retention, deadLetters),
      async run(stage) {
        const letter = await finish(stage, dead)
        const discarded = await finish(stage, dead)
        const replayed = await finish(stage, dead)
        const by = { who: 'suite', reason: 'test' }
        await stage.engine.deadLetters?.discard([discarded], by)
        await stage.engine.deadLetters?.requeue([replayed], by)
        const beforeMs = stage.nowMs + 1_000
        assert.equal(await sweepAll(stage, [{ what: 'dead', beforeMs }]), 1)
        assert.deepEqual(await purged(stage), [['retention', letter]])
        assert.equal(await sweepAll(stage, [{ what: 'ended', beforeMs }], { by: { who: 'ann', reason: 'x' } }), 1)
        assert.deepEqual((await purged(stage))?.[0], ['ann', discarded])
        await stage.expectCounts({ ready: 1 })
      },
    },
    {
      name: 'a sweep looks at no more jobs than it was told, and goes on where it ended',
      guarantees: ['I1'],
      ...need(retention),
      async run(stage) {
        for (let count = 0; count < 7; count += 1) await finish(stage, count % 2 === 0 ? complete : dead)
        const rules: readonly RetentionRule[] = [{ what: 'completed', beforeMs: stage.nowMs + 1_000 }]
        const counted = await sweepAll(stage, rules, { max: 2, dryRun: true })
        assert.equal(counted, 4)
        await stage.expectCounts({ completed: 4, dead: 3 })
        const first = await retentionOf(stage.engine).sweep(rules, { from: null, max: 2 })
        assert.deepEqual([first.removed, first.next === null], [1, false])
        await stage.expectCounts({ completed: 3, dead: 3 })
        const rest = await sweepAll(stage, rules, { max: 2 })
        assert.equal(rest, 3)
        await stage.expectCounts({ dead: 3 })
      },
    },
    {
      name: 'what is removed takes no space any more, and giving space back comes to an end and loses no job',
      guarantees: ['I1'],
      ...need(retention),
      async run(stage) {
        const payload = JSON.stringify('x'.repeat(20_000))
        const jobs = stage.jobs(100, { payload })
        await stage.engine.enqueue(jobs)
        const consumer = await stage.consume()
        for (let left = 100; left > 0; ) {
          const leases = await stage.take(consumer, 50)
          await consumer.settle(leases.map((lease) => ({ lease, outcome: complete })))
          left -= leases.length
        }
        await stage.put({ payload: '"kept"' })
        const facet = retentionOf(stage.engine)
        const full = await facet.usedBytes()
        assert.ok(full > 100 * 20_000, `${full} bytes for 100 jobs of 20 kB`)
        assert.equal(await sweepAll(stage, [{ what: 'completed', beforeMs: stage.nowMs + 1_000 }]), 100)
        const left = await facet.usedBytes()
        assert.ok(left < full / 4, `${left} of ${full} bytes are still in use`)
        let steps = 0
        while ((await facet.compact()) && steps < 10_000) steps += 1
        assert.ok(steps < 10_000, 'compacting does not end')
        assert.equal((await stage.one(consumer)).job.payload, '"kept"')
      },
    },
    {
      // A44: five of ten stay, none of them, or all of them.
      name: 'a completion that says how many of its type stay leaves only the newest',
      guarantees: ['I1'],
      ...need(retention, inspection),
      async run(stage) {
        const [five, none, all] = [`${stage.type}-five`, `${stage.type}-none`, `${stage.type}-all`]
        const ids: string[] = []
        for (let count = 0; count < 10; count += 1) {
          ids.push(await finish(stage, { ...done, keep: 5 }, { type: five }))
          await finish(stage, { ...done, keep: 0 }, { type: none })
          await finish(stage, complete, { type: all })
        }
        assert.deepEqual(
          await stored(stage, ids),
          ids.map((_, index) => index >= 5),
        )
        await stage.expectCounts({ completed: 5 }, five)
        await stage.expectCounts({}, none)
        await stage.expectCounts({ completed: 10 }, all)
      },
    },
    {
      // A45 X013
      name: 'a death that says how many of its type stay leaves only the newest, each other one in the audit',
      guarantees: ['I9'],
      ...need(retention, deadLetters),
      async run(stage) {
        const ids: string[] = []
        for (let count = 0; count < 4; count += 1) ids.push(await finish(stage, { kind: 'dead', error: boom, keep: 2 }))
        const other = await finish(stage, dead, { type: `${stage.type}-other` })
        const listed = (await stage.engine.deadLetters?.list({ limit: 10 }))?.map(({ job }) => job.id)
        assert.deepEqual(listed?.sort(), [...ids.slice(2), other].sort())
        assert.deepEqual(await purged(stage), [
          ['retention', ids[1]],
          ['retention', ids[0]],
        ])
      },
    },
    {
      name: 'a completion that is refused removes nothing',
      guarantees: ['I3'],
      ...need(retention),
      async run(stage) {
        await finish(stage, complete)
        await stage.put()
        const consumer = await stage.consume()
        const lease: Lease = await stage.one(consumer)
        await stage.expire(lease)
        await stage.refused(consumer, lease, { ...done, keep: 0 })
        assert.equal((await stage.counts()).completed, 1)
      },
    },
    {
      name: 'who waits for a job that is removed as it completes is told its result',
      guarantees: ['I1'],
      ...need(retention, inspection),
      async run(stage) {
        const { id } = await stage.put()
        const consumer = await stage.consume()
        const lease = await stage.one(consumer)
        const waited = stage.engine.inspector?.waitFor(id, { waitMs: 1_000, signal: never })
        await stage.settle(consumer, lease, { ...done, result: '"told"', keep: 0 })
        assert.equal((await waited)?.result, 'told')
        assert.deepEqual(await stage.engine.inspector?.find([id]), [null])
      },
    },
  ],
}
