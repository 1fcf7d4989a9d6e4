import type { Controls, Inspector } from '../../../engine/engine.ts'
import type { JobView } from '../../../job/job.ts'
import type { RedisEngine } from '../engine.ts'
import { partsOf } from '../keys.ts'
import type { TypeStores } from './stores.ts'

type Wait = Parameters<Inspector['waitFor']>[1]

/** Jobs by id: an id does not say its type, so every type is asked. */
export function createInspector(stores: TypeStores): Inspector {
  return {
    find: (ids) => findJobs(stores, ids),
    async list(filter) {
      const { type, limit } = filter
      if (type !== undefined) return (await stores.of(type)).inspector.list(filter)
      const pages = await Promise.all((await stores.every()).map(({ inspector }) => inspector.list(filter)))
      return pages
        .flat()
        .sort((a, b) => (a.id < b.id ? 1 : -1))
        .slice(0, Math.max(0, limit))
    },
    async oldestDue() {
      const views = await Promise.all((await stores.every()).map(({ inspector }) => inspector.oldestDue()))
      const due = views.filter((view) => view !== null)
      return due.sort((a, b) => a.runAtMs - b.runAtMs || (a.id < b.id ? -1 : 1))[0] ?? null
    },
    history: async (id) => (await storeOf(stores, id))?.inspector.history(id) ?? [],
    async successors(ids) {
      const found = await Promise.all((await storesFor(stores, ids)).map(({ inspector }) => inspector.successors(ids)))
      return found.flat()
    },
    waitFor: (id, wait) => waitFor(stores, id, wait),
  }
}

export function createControls(stores: TypeStores): Controls {
  return { cancel: async (id, by) => (await storeOf(stores, id))?.controls.cancel(id, by) ?? false }
}

async function findJobs(stores: TypeStores, ids: readonly string[]): Promise<readonly (JobView | null)[]> {
  if (ids.length === 0) return []
  const found = await Promise.all((await storesFor(stores, ids)).map(({ inspector }) => inspector.find(ids)))
  return ids.map((_, index) => found.map((views) => views[index]).find((view) => view != null) ?? null)
}

/** The ids of other programs' jobs begin with their type, which need not be known here. */
async function storesFor(stores: TypeStores, ids: readonly string[]): Promise<readonly RedisEngine[]> {
  const named = ids.map((id) => partsOf(id)?.type ?? null)
  const types = named.includes(null) ? [...(await stores.types()), ...named] : named
  return Promise.all([...new Set(types)].flatMap((type) => (type === null ? [] : [stores.of(type)])))
}

/** The job may be removed before its store is found: its last view is kept from the beginning. */
async function waitFor(stores: TypeStores, id: string, wait: Wait): Promise<JobView | null> {
  const stopExpecting = stores.removedViews.expect(id)
  try {
    const store = await storeOf(stores, id)
    return store === null ? stores.removedViews.of(id) : await store.inspector.waitFor(id, wait)
  } finally {
    stopExpecting()
  }
}

/** The store that has the job; null where none has. */
export async function storeOf(stores: TypeStores, id: string): Promise<RedisEngine | null> {
  const [view] = await findJobs(stores, [id])
  return view == null ? null : stores.of(view.type)
}
