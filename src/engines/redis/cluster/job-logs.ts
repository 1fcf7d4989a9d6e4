import type { JobLogs } from '../../../engine/job-logs.ts'
import { storeOf } from './inspector.ts'
import type { TypeStores } from './stores.ts'

/** Lines go to the store of their type. Where one refuses them, those of other types may be kept already. */
export function createLogs(stores: TypeStores): JobLogs {
  return {
    async append(said, keep) {
      const byType = Map.groupBy(said, ({ job }) => job.type)
      await Promise.all([...byType].map(async ([type, part]) => (await stores.of(type)).logs.append(part, keep)))
    },
    read: async (id) => (await storeOf(stores, id))?.logs.read(id) ?? [],
  }
}
