import type { Records } from '../../../engine/records.ts'
import { saveFiring } from './fired.ts'
import type { TypeStores } from './stores.ts'

/** Records are in the shared store. One that is saved with jobs is on another node than these: see `saveFiring`. */
export function createRecords(stores: TypeStores): Records {
  return {
    list: (kind) => stores.shared.records.list(kind),
    save: (kind, record, expected, { jobs = [], ttlMs } = {}) =>
      jobs.length === 0
        ? stores.shared.records.save(kind, record, expected, ttlMs === undefined ? {} : { ttlMs })
        : saveFiring(stores, { kind, record, expected, ttlMs }, jobs),
    put: (kind, records, ttlMs) => stores.shared.records.put(kind, records, ttlMs),
    remove: (kind, names) => stores.shared.records.remove(kind, names),
    onChange: (listener) => stores.shared.records.onChange?.(listener) ?? (() => {}),
  }
}
