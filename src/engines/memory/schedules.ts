import type { ScheduleRecord, Schedules } from '../../engine/schedules.ts'
import type { Clock } from '../../time/clock.ts'
import type { MemoryStore } from './store.ts'

const byName = (one: ScheduleRecord, other: ScheduleRecord): number => (one.name < other.name ? -1 : 1)

export function createSchedules(open: () => MemoryStore, clock: Clock): Schedules {
  return {
    list: async () => [...open().schedules.values()].sort(byName),
    find: async (name) => open().schedules.get(name) ?? null,
    save: async (record, expected, jobs) => {
      const store = open()
      if ((store.schedules.get(record.name)?.revision ?? null) !== expected) return null
      // Read whole before anything is stored, and stored before the record: what throws leaves both as they were.
      const copies = jobs.map((job) => ({ ...job }))
      const { name, revision, nextAtMs, body } = record
      const receipts = store.enqueue(copies, clock.nowMs())
      store.schedules.set(name, { name, revision, nextAtMs, body })
      return receipts
    },
    remove: async (name) => open().schedules.delete(name),
  }
}
