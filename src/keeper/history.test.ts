import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Counts, Engine } from '../engine/engine.ts'
import { decodeBlock } from '../engine/history/block.ts'
import { HISTORY_BYTES_MAX, MARKS, RESOLUTIONS } from '../engine/history/resolutions.ts'
import { TallyWriter, TypeTally } from '../engine/history/tally.ts'
import { createMemoryRecords, RecordTable } from '../engine/memory-records.ts'
import { RecordPresence } from '../engine/presence.ts'
import type { Records } from '../engine/records.ts'
import { Events } from '../events.ts'
import { TestClock } from '../testing/test-clock.ts'
import { HistoryTerm, historyDuty } from './history.ts'

const MINUTE_MS = 60_000

interface Scene {
  readonly clock: TestClock
  readonly records: Records
  counts: Counts
  term(records?: Records): HistoryTerm
  /** A worker that ends attempts now, and says so. */
  worker(): { end(ended: Readonly<Record<string, number>>): Promise<void> }
  completed(kind: 'second' | 'minute' | 'hour'): Promise<number>
}

function scene(): Scene {
  const clock = new TestClock()
  const table = new RecordTable()
  const records = createMemoryRecords({ clock, table: () => table, enqueue: () => [] })
  const made: Scene = {
    ...{ clock, records, counts: {} },
    term: (own = records) =>
      new HistoryTerm({ engine: { counts: async () => made.counts, records }, clock, records: own, reaped: new Map() }),
    worker() {
      const writer = new TallyWriter(records)
      const offsetMs = clock.nowMs() - clock.monotonicMs()
      const tallies = new Map<string, TypeTally>()
      return {
        async end(ended) {
          const nowMs = clock.monotonicMs()
          for (const [type, times] of Object.entries(ended)) {
            const tally = tallies.get(type) ?? new TypeTally(offsetMs)
            tallies.set(type, tally)
            for (let one = 0; one < times; one += 1)
              tally.add('complete', nowMs - 2 ** (one % 12), nowMs, clock.nowMs())
          }
          await writer.write(tallies, offsetMs)
        },
      }
    },
    async completed(kind) {
      const blocks = (await records.list(kind)).flatMap(({ body }) => decodeBlock(body) ?? [])
      const cells = blocks.flatMap((block) => [...block.cells.values()].flatMap((types) => [...types.values()]))
      return cells.reduce((sum, { completed }) => sum + completed, 0)
    },
  }
  return made
}

test('over 91 days the records stay within their number and their bytes, with more types than are kept', async () => {
  const { clock, records, worker, term, completed } = scene()
  const [keeper, own] = [term(), worker()]
  const types = Object.fromEntries(Array.from({ length: 24 }, (_, at) => [`a-type-of-jobs-${at}`, 1 + (at % 7) * 3]))
  const pass = async (minutes: number): Promise<void> => {
    await own.end(types)
    await keeper.pass()
    await clock.advance(minutes * MINUTE_MS)
  }
  for (let step = 0; step < 90 * 4; step += 1) await pass(360)
  for (let step = 0; step < 144; step += 1) await pass(10)
  for (let step = 0; step < 20; step += 1) await pass(1)
  let bytes = 0
  for (const { kind, records: most, bytesMax } of Object.values(RESOLUTIONS)) {
    const stored = await records.list(kind)
    assert.ok(stored.length <= most, `${stored.length} records of ${kind}`)
    for (const { body } of stored) {
      assert.ok(Buffer.byteLength(body) <= bytesMax)
      bytes += Buffer.byteLength(body)
    }
  }
  assert.ok((await records.list('mark')).length <= MARKS.records)
  assert.ok(bytes < HISTORY_BYTES_MAX, `${bytes} bytes`)
  assert.deepEqual(await records.list('tally'), [], 'what was said is removed')
  assert.ok((await completed('hour')) > 0)
})

test('a pass that fails half-way is repeated without counting anything twice', async () => {
  const { clock, records, worker, term, completed } = scene()
  for (const failing of ['second', 'hour', 'tally'] as const) {
    let isFailing = true
    const fail = <Value>(kind: string, work: () => Promise<Value>): Promise<Value> => {
      if (!isFailing || kind !== failing) return work()
      isFailing = false
      return Promise.reject(new Error('cut off'))
    }
    const keeper = term({
      ...records,
      save: (kind, ...more) => fail(kind, () => records.save(kind, ...more)),
      remove: (kind, names) => fail(kind, () => records.remove(kind, names)),
    })
    const before = await completed('minute')
    await worker().end({ greet: 5 })
    await assert.rejects(keeper.pass(), /cut off/)
    await clock.advance(1_000)
    await keeper.pass()
    for (const kind of ['second', 'minute', 'hour'] as const) assert.equal(await completed(kind), before + 5, failing)
  }
})

test('of two keepers that believe to lead each tally is counted by one, at whatever moment they meet', async () => {
  for (const moment of ['list', 'save', 'remove'] as const) {
    const { records, worker, term, completed, clock } = scene()
    const own = worker()
    const other = term()
    let isMet = false
    const meet = async (at: string): Promise<void> => {
      if (at !== moment || isMet) return
      isMet = true
      await other.pass()
      await own.end({ greet: 4 })
      await other.pass()
    }
    const stale = term({
      ...records,
      list: async (kind) => {
        const found = await records.list(kind)
        if (kind === 'tally') await meet('list')
        return found
      },
      save: async (kind, ...more) => {
        await meet('save')
        return records.save(kind, ...more)
      },
      remove: async (kind, names) => {
        await meet('remove')
        return records.remove(kind, names)
      },
    })
    await own.end({ greet: 3 })
    await stale.pass()
    await clock.advance(MINUTE_MS)
    await stale.pass()
    await other.pass()
    await other.pass()
    for (const kind of ['second', 'minute', 'hour'] as const)
      assert.equal(await completed(kind), 7, `${moment} ${kind}`)
  }
})

test('what workers said while no keeper led is taken up by the next, and counted in its own minute', async () => {
  const { clock, records, worker, term, completed } = scene()
  const own = worker()
  for (let minute = 0; minute < 5; minute += 1) {
    await own.end({ greet: 2 })
    await clock.advance(MINUTE_MS)
  }
  await term().pass()
  assert.equal(await completed('minute'), 10)
  const [block] = (await records.list('minute')).map(({ body }) => decodeBlock(body))
  const perMinute = [...(block?.cells.values() ?? [])].flatMap((types) => types.get('greet')?.completed ?? [])
  assert.deepEqual(
    perMinute.filter((count) => count > 0),
    [2, 2, 2, 2, 2],
  )
})

test('an idle store is written every ten minutes, and at once when its counts change', async () => {
  const made = scene()
  const { clock, records } = made
  let saves = 0
  const keeper = made.term({
    ...records,
    save: (...all) => {
      saves += 1
      return records.save(...all)
    },
  })
  for (let minute = 0; minute < 30; minute += 1) {
    await keeper.pass()
    await clock.advance(MINUTE_MS)
  }
  assert.ok(saves <= 4 * 3, `${saves} saves in half an hour`)
  const before = saves
  made.counts = { greet: { ready: 3, delayed: 0, inProgress: 0, completed: 0, dead: 0 } }
  await keeper.pass()
  assert.equal(saves, before + 3)
})

test('jobs that come and go between two counts are counted as enqueued', async () => {
  const made = scene()
  const { clock, records, worker } = made
  const keeper = made.term()
  const own = worker()
  const ready = (count: number): Counts => ({
    greet: { ready: count, delayed: 0, inProgress: 0, completed: 0, dead: 0 },
  })
  await keeper.pass()
  await clock.advance(MINUTE_MS)
  made.counts = ready(5)
  await keeper.pass()
  await clock.advance(MINUTE_MS)
  // Three of them are done, of which nobody has told yet, and one more has come.
  made.counts = ready(3)
  await keeper.pass()
  await own.end({ greet: 3 })
  await clock.advance(MINUTE_MS)
  await keeper.pass()
  const blocks = (await records.list('hour')).flatMap(({ body }) => decodeBlock(body) ?? [])
  assert.equal(blocks[0]?.cells.get(0)?.get('greet')?.enqueued, 6)
})

test('starts of workers are marked with their version, once', async () => {
  const { clock, records, term } = scene()
  const presence = new RecordPresence(records)
  const work = { host: 'h', pid: 1, startedAtMs: clock.nowMs(), concurrency: 1, running: 0, jobs: [] }
  const beat = (version: string) => ({
    ...({
      type: 'greet',
      instance: version,
      status: 'RUNNING',
      atMs: clock.nowMs(),
      lastJobAtMs: null,
      lag: null,
    } as const),
    ...{ stoppingSinceMs: null, work: { ...work, startedAtMs: clock.nowMs(), version } },
  })
  await presence.beat([beat('1.0.0')], 30_000)
  const keeper = term()
  await keeper.pass()
  await keeper.pass()
  await term().pass()
  await clock.advance(MINUTE_MS)
  await presence.beat([beat('1.1.0')], 30_000)
  await keeper.pass()
  const texts = (await records.list('mark')).flatMap(({ body }) =>
    JSON.parse(body).marks.map((mark: string[]) => mark[2]),
  )
  assert.deepEqual(texts, [
    'Workers of version 1.0.0 started',
    'Workers of version 1.1.0 started',
    'No worker of version 1.0.0 is left',
  ])
})

test('an attempt whose worker died counts as failed, by the keeper that reaped it', async () => {
  const { clock, records, completed } = scene()
  const events = new Events()
  const engine: Pick<Engine, 'counts' | 'records'> = { counts: async () => ({}), records }
  const [duty, other] = ['one', 'other'].map((keeper) => historyDuty({ engine, clock, events }, keeper, records))
  const off = duty?.onChange?.(() => {})
  const offOther = other?.onChange?.(() => {})
  const job = { id: '1', type: 'greet', priority: 0, attempts: 3, tenant: null, runAtMs: 0, createdAtMs: 0 }
  const error = { name: 'Error', code: null, message: 'expired', stack: null }
  events.emit('lease.reaped', { job, attempt: 1, worker: 'one', outcome: { kind: 'retry', delayMs: 0, error } })
  events.emit('lease.reaped', { job, attempt: 3, worker: 'one', outcome: { kind: 'dead', error } })
  const term = { signal: new AbortController().signal, holds: async () => true }
  for (const one of [duty, other]) for (let pass = 0; pass < 2; pass += 1) await one?.perform(term)
  off?.()
  offOther?.()
  const [block] = (await records.list('minute')).map(({ body }) => decodeBlock(body))
  const cell = [...(block?.cells.values() ?? [])][0]?.get('greet')
  assert.deepEqual([cell?.failed, cell?.died, await completed('minute')], [2, 1, 0])
})
