import type { Records } from '../../../engine/records.ts'
import { enqueueByType } from './enqueue.ts'
import type { TypeStores } from './stores.ts'

/**
 * Records are in the common store, jobs in that of their type, so no step can write both. The jobs are stored first, if
 * the revision fits. Whoever is interrupted then leaves the record as it was, and the next one stores the same jobs again,
 * which are known by their ids. A record that changes in between has its jobs all the same.
 */
export function createRecords(stores: TypeStores): Records {
  return {
    list: (kind) => stores.common.records.list(kind),
    async save(kind, record, expected, { jobs = [], ...options } = {}) {
      const { records } = stores.common
      if (jobs.length === 0) return records.save(kind, record, expected, options)
      const stored = (await records.list(kind)).find(({ name }) => name === record.name)
      if ((stored?.revision ?? null) !== expected) return null
      const receipts = await enqueueByType(stores, jobs)
      return (await records.save(kind, record, expected, options)) === null ? null : receipts
    },
    put: (kind, records, ttlMs) => stores.common.records.put(kind, records, ttlMs),
    remove: (kind, names) => stores.common.records.remove(kind, names),
  }
}
