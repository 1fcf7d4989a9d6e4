/** What a chart shows is the same in every process and after every restart. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Mill, open } from '../../client/mill.ts'
import { Block, encodeBlock, TYPES_MAX } from '../../engine/history/block.ts'
import { blockStartMs, RESOLUTIONS, recordName } from '../../engine/history/resolutions.ts'
import { createMemoryRecords, RecordTable } from '../../engine/memory-records.ts'
import { defineJob } from '../../job/definition.ts'
import { TestClock } from '../../testing/test-clock.ts'
import type { HistoryPoint } from '../sampling/sampler.ts'
import { type Past, type PastOptions, readPast } from './history.ts'
import { RANGE_NAMES, RANGES } from './ranges.ts'

const MINUTE_MS = 60_000

async function past({ engine }: Mill, options: PastOptions) {
  assert.ok(engine.records !== undefined)
  return readPast(engine.records, options)
}

/** Rates of the last step are of the part of it that has passed. */
function sumOf(
  { points, stepMs }: Past,
  nowMs: number,
  of: 'completedPerSecond' | 'failedPerSecond' = 'completedPerSecond',
): number {
  const partOf = ({ atMs }: HistoryPoint): number => Math.max(1, Math.min(stepMs, nowMs - atMs) / 1_000)
  return Math.round(points.reduce((sum, point) => sum + (point[of] ?? 0) * partOf(point), 0))
}

async function passMinutes(clock: TestClock, minutes: number): Promise<void> {
  for (let second = 0; second < minutes * 60; second += 1) await clock.advance(1_000)
}

test('what one process does is read by another, and by the next after a restart', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-history-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const url = `sqlite:${join(folder, 'jobs.db')}`
  const clock = new TestClock(Date.UTC(2026, 0, 1, 12))
  const greet = defineJob({ type: 'greet', removeOnComplete: true, run: () => 'hello' })
  const fail = defineJob({ type: 'fail', attempts: 1, run: () => Promise.reject(new Error('no')) })
  {
    await using worker = await open(url, { clock })
    await using reader = await open(url, { clock })
    await worker.work([greet, fail])
    await worker.enqueueMany(greet, [1, 2, 3, 4, 5, 6])
    await worker.enqueueMany(fail, [1, 2])
    await worker.enqueueMany(greet, [7], { delay: '1h' })
    const startMs = clock.nowMs()
    await passMinutes(clock, 1)
    const before = await past(reader, { range: '1h', nowMs: clock.nowMs() })
    await passMinutes(clock, 3)
    const after = await past(reader, { range: '1h', nowMs: clock.nowMs() })
    assert.deepEqual([sumOf(before, startMs + MINUTE_MS), sumOf(after, clock.nowMs())], [6, 6])
    assert.equal(sumOf(after, clock.nowMs(), 'failedPerSecond'), 2)
    assert.deepEqual(after.types, ['fail', 'greet'])
    const { delayed, dead } = after.points.at(-2) ?? {}
    assert.deepEqual([delayed, dead], [1, 2])
    await worker.enqueueMany(greet, [8, 9])
    await passMinutes(clock, 1)
    // Ended after the last heartbeat, and said when the worker stops.
    await worker.enqueueMany(greet, [10])
    for (let tick = 0; tick < 20; tick += 1) await clock.advance(50)
  }
  await using later = await open(url, { clock })
  for (const range of RANGE_NAMES) {
    const found = await past(later, { range, nowMs: clock.nowMs() })
    assert.equal(found.points.length, RANGES[range].ms / RANGES[range].stepMs)
    assert.ok(found.points.length <= 180)
    assert.equal(sumOf(found, clock.nowMs()), 9, range)
  }
  const one = await past(later, { range: '1h', type: 'fail', nowMs: clock.nowMs() })
  assert.deepEqual([sumOf(one, clock.nowMs()), sumOf(one, clock.nowMs(), 'failedPerSecond')], [0, 2])
  assert.ok(one.points.some(({ durationP99Ms }) => durationP99Ms !== null))
})

test('minutes of which nobody told are unknown, and quiet ones are not', async () => {
  const clock = new TestClock(Date.UTC(2026, 0, 1, 12))
  await using mill = await open('memory:', { clock })
  const greet = defineJob({ type: 'greet', run: () => 'hello' })
  const worker = await mill.work([greet])
  await passMinutes(clock, 6)
  await worker.stop()
  await passMinutes(clock, 20)
  const { points } = await past(mill, { range: '1h', nowMs: clock.nowMs() })
  const known = points.map(({ completedPerSecond, ready }) => [completedPerSecond, ready])
  assert.deepEqual(known.at(-1), [null, null], 'no keeper has written for longer than it may be silent')
  assert.deepEqual(known.at(-22), [0, 0], 'a keeper ran, and nothing happened')
  assert.deepEqual(known[0], [null, null])
})

test('of a type that was not kept apart nothing is known in that time, and the whole has it', async () => {
  const clock = new TestClock(Date.UTC(2026, 0, 1, 12))
  const table = new RecordTable()
  const records = createMemoryRecords({ clock, table: () => table, enqueue: () => [] })
  const nowMs = clock.nowMs() + 5 * MINUTE_MS
  const { minute } = RESOLUTIONS
  const block = new Block(blockStartMs(minute, nowMs), minute.stepMs)
  for (let type = 0; type <= TYPES_MAX; type += 1) block.cell(2, `type${type}`).completed = 60 * (type + 1)
  const record = { name: recordName(minute, block.fromMs), revision: '1', body: encodeBlock(block, minute) }
  await records.save('minute', record, null)
  const at = (points: readonly HistoryPoint[]) => points.find(({ atMs }) => atMs === block.fromMs + 2 * MINUTE_MS)
  const all = await readPast(records, { range: '1h', nowMs })
  assert.equal(all.hasOthers, true)
  assert.equal(at(all.points)?.completedPerSecond, ((TYPES_MAX + 1) * (TYPES_MAX + 2)) / 2)
  const least = await readPast(records, { range: '1h', type: 'type0', nowMs })
  assert.equal(at(least.points)?.completedPerSecond, null)
  const most = await readPast(records, { range: '1h', type: `type${TYPES_MAX}`, nowMs })
  assert.equal(at(most.points)?.completedPerSecond, TYPES_MAX + 1)
})
