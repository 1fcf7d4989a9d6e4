import type { Engine } from '../../../src/engine/engine.ts'
import type { RecordKind, Records } from '../../../src/engine/records.ts'
import { replaced } from '../../../src/testing/replaced.ts'
import { judgeReceipts } from './enqueues.ts'
import { allJobs, answered, type KnownRecord, type Watch } from './watch.ts'

export function watchRecords(engine: Engine, records: Records, watch: Watch): Records {
  const known = (kind: RecordKind): Map<string, KnownRecord> => {
    const table = watch.records.get(kind) ?? new Map<string, KnownRecord>()
    watch.records.set(kind, table)
    return table
  }
  const untilOf = (ttlMs: number | undefined): number | null =>
    ttlMs === undefined ? null : watch.clock.monotonicMs() + ttlMs
  const judgeAll = async (kind: RecordKind): Promise<void> => judge(watch, known(kind), kind, await records.list(kind))
  const calls: Pick<Records, 'list' | 'save' | 'put' | 'remove'> = {
    list: async (kind) => {
      const listed = await answered(watch, 'a list of records', () => records.list(kind))
      judge(watch, known(kind), kind, listed)
      return listed
    },
    save: async (kind, record, expected, options) => {
      const isCurrent = (known(kind).get(record.name)?.revision ?? null) === expected
      const before = await allJobs(engine)
      const receipts = await answered(watch, 'a save', () => records.save(kind, record, expected, options))
      const what = `the save of the ${kind} '${record.name}'`
      watch.expect(
        (receipts !== null) === isCurrent,
        null,
        () => `${what} was ${receipts === null ? 'refused' : 'taken'}, which is wrong`,
      )
      if (receipts !== null) {
        const { name, revision, body } = record
        known(kind).set(name, { revision, body, untilMs: untilOf(options?.ttlMs) })
      }
      await judgeReceipts(engine, watch, {
        jobs: receipts === null ? [] : (options?.jobs ?? []),
        receipts: receipts ?? [],
        before,
      })
      await judgeAll(kind)
      return receipts
    },
    put: async (kind, given, ttlMs) => {
      await answered(watch, 'a put', () => records.put(kind, given, ttlMs))
      for (const { name, body } of given) known(kind).set(name, { revision: null, body, untilMs: untilOf(ttlMs) })
      await judgeAll(kind)
    },
    remove: async (kind, names) => {
      const there = names.filter((name) => known(kind).has(name)).length
      const removed = await answered(watch, 'a removal of records', () => records.remove(kind, names))
      watch.same(null, `the number of removed records of kind ${kind}`, removed, there)
      for (const name of names) known(kind).delete(name)
      await judgeAll(kind)
      return removed
    },
  }
  return replaced(records, new Map<PropertyKey, unknown>(Object.entries(calls)))
}

function judge(
  watch: Watch,
  known: ReadonlyMap<string, KnownRecord>,
  kind: RecordKind,
  listed: Awaited<ReturnType<Records['list']>>,
): void {
  const nowMs = watch.clock.monotonicMs()
  const found = listed.map(({ name, revision, body, leftMs }) => {
    const isPut = known.get(name)?.revision === null
    return { name, body, revision: isPut ? null : revision, leftMs }
  })
  const promised = [...known].map(([name, { revision, body, untilMs }]) => {
    return { name, body, revision, leftMs: untilMs === null ? null : untilMs - nowMs }
  })
  const sorted = promised.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  watch.same(
    null,
    `the list of records of kind ${kind}`,
    found.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    sorted,
  )
}
