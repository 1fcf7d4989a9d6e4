import assert from 'node:assert/strict'
import type { Mill } from '../../../src/client/mill.ts'
import type { MillOptions } from '../../../src/client/options.ts'
import { presenceOf } from '../../../src/engine/capability-checks.ts'
import { MemoryPresence } from '../../../src/engine/memory-records.ts'
import type { Records } from '../../../src/engine/records.ts'
import { HistoryTerm } from '../../../src/keeper/history.ts'
import { readPast } from '../../../src/observe/history/history.ts'
import type { CaseFile } from '../../case.ts'
import { numberedJob, record, SOON_MS } from '../../crew.ts'
import { deadLetters, leadership, need } from '../../needs.ts'
import { pausing, presence } from '../../operations.ts'
import { gate, type Stage } from '../../stage.ts'

/** Long enough for a worker that did not heed a pause to have started a job. */
const HEEDED_MS = 1_500

/** Two views of the store, each with a worker. */
async function holdsBack(stage: Stage, options: MillOptions = {}): Promise<void> {
  const mills = [await stage.mill(stage.engine, options), await stage.mill(await stage.other(), options)] as const
  const ran: string[] = []
  const held = numberedJob(stage, { run: () => ran.push('held') })
  const free = numberedJob(stage, { run: () => ran.push('free') }, `${stage.type}-free`)
  for (const mill of mills) await mill.work([held, free])
  const heeded = Promise.all(mills.map((mill) => mill.events.next('worker.paused')))
  assert.equal(await mills[0].pause(stage.type, { who: 'ann', reason: 'test' }), true)
  for (const { types } of await stage.within(SOON_MS, heeded, 'both workers’ heed')) {
    assert.deepEqual(types, [stage.type])
  }
  for (const mill of mills) await mill.enqueueMany(held, [{ n: 1 }, { n: 2 }])
  await mills[0].enqueue(free, { n: 1 })
  await stage.until(SOON_MS, () => ran.includes('free'), 'the run of the other type')
  await stage.harness.advance(HEEDED_MS)
  assert.deepEqual(ran, ['free'])
  await stage.expectCounts({ ready: 4 })
  assert.equal(await mills[1].resume(stage.type), true)
  await stage.until(SOON_MS, () => ran.length === 5, 'the runs after the resume')
}

/** Completed and failed attempts of the case's type, as a chart of 90 days has them. */
async function endedIn({ type, nowMs }: Stage, records: Records): Promise<readonly number[]> {
  const { points, stepMs } = await readPast(records, { range: '90d', type, nowMs })
  const sum = (of: 'completedPerSecond' | 'failedPerSecond'): number =>
    points.reduce((all, point) => all + (point[of] ?? 0) * Math.max(1, Math.min(stepMs, nowMs - point.atMs) / 1_000), 0)
  return [Math.round(sum('completedPerSecond')), Math.round(sum('failedPerSecond'))]
}

export const operating: CaseFile = {
  level: 'client',
  concept: 'Operating',
  cases: [
    {
      name: 'a paused type starts in no worker, others go on, and it goes on when it is resumed',
      guarantees: ['I12'],
      ...need(pausing),
      run: (stage) => holdsBack(stage),
    },
    {
      name: 'with a presence beside the engine a paused type starts in no worker either, and goes on',
      guarantees: ['I12'],
      run: (stage) => holdsBack(stage, { presence: new MemoryPresence(stage.harness.clock) }),
    },
    {
      name: 'workers that were given one id are told apart, and it is said',
      guarantees: ['I12'],
      ...need(presence),
      async run(stage) {
        const mills = [await stage.mill(), await stage.mill(await stage.other())] as const
        const told: string[] = []
        for (const mill of mills) {
          mill.events.on('worker.error', ({ during, error }) =>
            told.push(`${during} ${Reflect.get(Object(error), 'code')}`),
          )
        }
        const job = numberedJob(stage, { run: () => null })
        const start = (mill: Mill) => mill.work([job], { id: 'same' })
        const workers = [
          ...(await stage.within(SOON_MS, Promise.all([start(mills[0]), start(mills[0])]), 'two starts at once')),
          await stage.within(SOON_MS, start(mills[1]), 'a start elsewhere'),
        ]
        const ids = workers.map(({ id }) => id).sort()
        assert.equal(new Set(ids).size, 3)
        assert.ok(ids.includes('same'), 'the first has the id that it was given')
        assert.deepEqual((await mills[0].workers()).map(({ id }) => id).sort(), ids)
        assert.deepEqual(told, ['start ERR_OPTION_INVALID', 'start ERR_OPTION_INVALID'])
        for (const worker of workers) await stage.within(SOON_MS, worker.stop(), 'the stop')
        const again = await stage.within(SOON_MS, start(mills[1]), 'a start after the stop')
        assert.equal(again.id, 'same')
      },
    },
    {
      name: 'a worker that starts while its only type is paused waits for the resume',
      guarantees: ['I12'],
      ...need(pausing),
      async run(stage) {
        const mill = await stage.mill()
        const job = numberedJob(stage, { run: () => null })
        await mill.pause(stage.type)
        await mill.enqueue(job, { n: 1 })
        const seen = record(mill)
        await mill.work([job])
        await stage.harness.advance(HEEDED_MS)
        assert.deepEqual(seen.settled, [])
        await stage.expectCounts({ ready: 1 })
        await mill.resume(stage.type)
        await stage.until(SOON_MS, () => seen.settled.length === 1, 'the run after the resume')
      },
    },
    {
      name: 'a pause and a resume leave an entry in the audit',
      guarantees: ['I12'],
      ...need(pausing, deadLetters),
      async run(stage) {
        const mill = await stage.mill()
        await mill.pause(stage.type, { who: 'ann', reason: 'slow' })
        assert.equal(await mill.pause(stage.type, { who: 'bob', reason: 'slow too' }), false)
        await mill.resume(stage.type, { who: 'cid', reason: 'fast again' })
        assert.equal(await mill.resume(stage.type), false)
        const entries = (await stage.engine.deadLetters?.audit({ limit: 10 })) ?? []
        assert.deepEqual(
          entries.map(({ action, who, reason, type }) => [action, who, reason, type]),
          [
            ['resume', 'cid', 'fast again', stage.type],
            ['pause', 'ann', 'slow', stage.type],
          ],
        )
      },
    },
    {
      name: 'what a worker has done is in the history of every view, once, before and after a keeper takes it',
      guarantees: ['I12'],
      ...need(leadership),
      async run(stage) {
        const [mill, { engine }] = [await stage.mill(), await stage.mill(await stage.other())]
        const run = ({ payload: { n } }: { readonly payload: { readonly n: number } }): null => {
          if (n === 4) throw new Error('the fourth fails')
          return null
        }
        const job = numberedJob(stage, { attempts: 1, run })
        const { records } = engine
        assert.ok(records !== undefined)
        const worker = await mill.work([job], { keeper: false })
        const { settled } = record(mill)
        await mill.enqueueMany(job, [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }])
        await stage.until(SOON_MS, () => settled.length === 4, 'the ends of the jobs')
        await stage.within(SOON_MS, worker.stop(), 'the stop')
        assert.deepEqual(await endedIn(stage, records), [3, 1])
        await new HistoryTerm({ engine, records, clock: stage.harness.clock, reaped: new Map() }).pass()
        assert.deepEqual(await records.list('tally'), [])
        assert.deepEqual(await endedIn(stage, records), [3, 1])
      },
    },
    {
      name: 'another client sees a worker, what it runs, and that it is gone',
      guarantees: ['I12'],
      ...need(presence),
      async run(stage) {
        const [mill, other] = [await stage.mill(), await stage.mill(await stage.other())]
        const open = gate()
        // The clock makes a jump of ten seconds, longer than the leases of other cases.
        const job = numberedJob(stage, { lease: '10m', run: () => open.opened })
        const quiet = numberedJob(stage, { run: () => null }, `${stage.type}-quiet`)
        const worker = await mill.work([job], { id: 'suite:1:seen', concurrency: 3 })
        await mill.work([quiet], { id: 'suite:1:unseen', presence: false })
        const started = mill.events.next('job.started')
        const { id } = await mill.enqueue(job, { n: 1 })
        await stage.within(SOON_MS, started, 'the start')
        await stage.harness.advance(10_000)
        const isRunning = async (): Promise<boolean> => (await other.workers())[0]?.running === 1
        await stage.until(SOON_MS, isRunning, 'a beat that says what it runs')
        const [view, ...more] = await other.workers()
        assert.deepEqual(more, [], 'a worker was seen that does not say that it lives')
        assert.deepEqual([view?.id, view?.concurrency, view?.condition], ['suite:1:seen', 3, 'working'])
        const jobs = view?.types.flatMap((type) => type.jobs.map((run) => [type.type, run.id, run.attempt]))
        assert.deepEqual(jobs, [[stage.type, id, 1]])
        open.open()
        await stage.within(SOON_MS, worker.stop(), 'the stop')
        const isGone = async (): Promise<boolean> => (await other.workers()).length === 0
        await stage.until(SOON_MS, isGone, 'the goodbye')
      },
    },
    {
      // D10 X156
      name: 'a worker that is no longer heard is missing after a minute',
      guarantees: ['I12'],
      ...need(presence),
      async run(stage) {
        const mill = await stage.mill()
        const beat = { type: stage.type, instance: 'w', status: 'RUNNING', atMs: stage.nowMs } as const
        const unknown = { lastJobAtMs: null, lag: null, stoppingSinceMs: null }
        await presenceOf(stage.engine).beat([{ ...beat, ...unknown }], 30_000)
        const condition = async () => (await mill.workers()).map((view) => view.condition)
        assert.deepEqual(await condition(), ['running'])
        await stage.harness.advance(40_000)
        assert.deepEqual(await condition(), ['late'])
        await stage.harness.advance(25_000)
        assert.deepEqual(await condition(), ['missing'])
      },
    },
  ],
}
