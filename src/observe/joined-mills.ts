import { addCounts } from '../engine/counts.ts'
import type { Counts, Inspector, TypeCounts } from '../engine/engine.ts'
import type { PauseStore } from '../engine/pauses.ts'
import type { RememberingPresence, WorkersRead } from '../engine/presence.ts'
import type { Records } from '../engine/records.ts'
import { joinEvents } from '../events.ts'
import type { Recovering } from './metrics/instrument.ts'
import type { ObservedMill } from './observed-mill.ts'

export type JoinedMill = ObservedMill<
  'name' | 'ping' | 'threadUrl' | 'counts' | 'inspector' | 'records' | 'workers'
> & { readonly engine: Recovering }

/**
 * Several mills of a process as one, for what observes it: all their events, and the counts and workers of all their stores,
 * added up. On Kafka each group has its own backlog of a topic, and a group that does not read it sees all of it as waiting:
 * there a type is counted in the groups of the mills that work on it, and left out if none does, because what other programs
 * read of it is not known. Join them before their workers start, or say what workers in other processes run on each:
 * `worked`, in the order of the mills.
 */
export function joinMills(
  mills: readonly [JoinedMill, ...JoinedMill[]],
  worked: readonly (readonly string[])[] = [],
): JoinedMill {
  const [first, ...others] = mills
  if (others.length === 0) return first
  const stores = distinctStores(mills, worked)
  const events = joinEvents(first.events, ...others.map((mill) => mill.events))
  return { events, engine: joinEngines(stores) }
}

interface Store {
  readonly engine: JoinedMill['engine']
  /** What workers on it run. */
  readonly types: Set<string>
}

/** Mills on one store are asked once. */
function distinctStores(
  mills: readonly JoinedMill[],
  worked: readonly (readonly string[])[],
): readonly [Store, ...Store[]] {
  const stores: Store[] = []
  for (const [index, { engine, events }] of mills.entries()) {
    const same = stores.find(({ engine: known }) => known.threadUrl !== null && known.threadUrl === engine.threadUrl)
    const store = same ?? { engine, types: new Set<string>() }
    if (same === undefined) stores.push(store)
    const know = (types: readonly string[]): void => {
      for (const type of types) store.types.add(type)
    }
    know(worked[index] ?? [])
    events.on('worker.started', ({ types }) => know(types))
  }
  const [first, ...others] = stores
  if (first === undefined) throw new TypeError('no mill was given')
  return [first, ...others]
}

function joinEngines(stores: readonly [Store, ...Store[]]): JoinedMill['engine'] {
  const engines = stores.map(({ engine }) => engine)
  const [{ engine: first }] = stores
  return {
    name: [...new Set(engines.map(({ name }) => name))].join('+'),
    threadUrl: first.threadUrl,
    ping: async () => void (await Promise.all(engines.map((engine) => engine.ping()))),
    counts: () => joinCounts(stores),
    ...(first.inspector !== undefined && { inspector: joinInspectors(first.inspector, engines) }),
    ...recoveryOf(engines),
    ...joinedFacets(engines),
  }
}

/** One that needs a reaper is enough. */
function recoveryOf(engines: readonly Recovering[]): Recovering {
  const known = engines.flatMap(({ capabilities }) => capabilities ?? [])
  const one = known.find(({ recovery }) => recovery === 'reaper') ?? known[0]
  return one === undefined ? {} : { capabilities: one }
}

/** Some of them keep heartbeats, others know their workers by themselves. */
function joinedFacets(engines: readonly JoinedMill['engine'][]): WorkersRead {
  const [first, ...others] = engines.flatMap(({ records }) => records ?? [])
  const knowing = engines.filter(({ workers }) => workers !== undefined)
  const besides = [...new Set(engines.flatMap(({ presence }) => presence ?? []))]
  return {
    ...(besides.length > 0 && { presence: joinPresences(besides) }),
    ...(first !== undefined && { records: joinRecords(first, others) }),
    ...(knowing.length > 0 && {
      workers: async () => (await Promise.all(knowing.map((engine) => engine.workers?.() ?? []))).flat(),
    }),
  }
}

/** Those of all stores are listed. Nothing that observes changes one; if it did, it would be the first store's. */
function joinRecords(first: Records, others: readonly Records[]): Records {
  return {
    list: async (kind) => (await Promise.all([first, ...others].map((records) => records.list(kind)))).flat(),
    save: (kind, record, expected, options) => first.save(kind, record, expected, options),
    put: (kind, records, ttlMs) => first.put(kind, records, ttlMs),
    remove: (kind, names) => first.remove(kind, names),
  }
}

function joinPresences(presences: readonly RememberingPresence[]): RememberingPresence {
  const [only] = presences
  if (only !== undefined && presences.length === 1) return only
  const all = async (read: (presence: RememberingPresence) => Promise<unknown>): Promise<void> =>
    void (await Promise.all(presences.map(read)))
  const [kept, ...others] = presences.flatMap(({ pauses }) => pauses ?? [])
  return {
    list: async () => (await Promise.all(presences.map((presence) => presence.list()))).flat(),
    seen: async () => (await Promise.all(presences.map((presence) => presence.seen()))).flat(),
    beat: (beats, ttlMs) => all((presence) => presence.beat(beats, ttlMs)),
    gone: (instance, types) => all((presence) => presence.gone(instance, types)),
    ...(kept !== undefined && { pauses: joinPauses(kept, others) }),
  }
}

/** As with records: all are listed, and the first would be changed. */
function joinPauses(first: PauseStore, others: readonly PauseStore[]): PauseStore {
  return {
    list: async () => (await Promise.all([first, ...others].map((pauses) => pauses.list()))).flat(),
    pause: (type, by) => first.pause(type, by),
    resume: (type) => first.resume(type),
  }
}

/** Only the oldest job is looked for in all of them: nothing that observes asks for the others. */
function joinInspectors(first: Inspector, engines: readonly JoinedMill['engine'][]): Inspector {
  return {
    find: (ids) => first.find(ids),
    list: (filter) => first.list(filter),
    history: (id) => first.history(id),
    successors: (ids) => first.successors(ids),
    waitFor: (id, wait) => first.waitFor(id, wait),
    oldestDue: async () => {
      const found = await Promise.all(engines.map(({ inspector }) => inspector?.oldestDue() ?? null))
      return found.filter((job) => job !== null).sort((a, b) => a.runAtMs - b.runAtMs)[0] ?? null
    },
  }
}

async function joinCounts(stores: readonly Store[]): Promise<Counts> {
  const counted = await Promise.all(stores.map(async (store) => ({ ...store, counts: await store.engine.counts() })))
  const joined: Record<string, TypeCounts> = {}
  for (const { engine, types, counts } of counted) {
    for (const [type, found] of Object.entries(counts)) {
      const known = joined[type]
      // A store without records is one of the groups of a broker.
      const isOwn = engine.records !== undefined || stores.length === 1 || types.has(type)
      if (isOwn) joined[type] = known === undefined ? found : addCounts(known, found)
    }
  }
  return joined
}
