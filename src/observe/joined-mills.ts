import type { Counts, Inspector, TypeCounts } from '../engine/engine.ts'
import { joinEvents } from '../events.ts'
import type { ObservedMill } from './observed-mill.ts'

export type JoinedMill = ObservedMill<'name' | 'ping' | 'threadUrl' | 'counts' | 'inspector' | 'records'>

/**
 * Several mills of a process as one, for what observes it: all their events, and the counts of all their stores. Jobs of a
 * type are counted in the stores of the mills that work on it, and added up: on Kafka each group has its own backlog of a
 * topic, and a group that does not read it sees all of it as waiting. Join them before their workers start.
 */
export function joinMills(mills: readonly [JoinedMill, ...JoinedMill[]]): JoinedMill {
  const [first, ...others] = mills
  if (others.length === 0) return first
  const stores = distinctStores(mills)
  const events = joinEvents(first.events, ...others.map((mill) => mill.events))
  return { events, engine: joinEngines(stores) }
}

interface Store {
  readonly engine: JoinedMill['engine']
  /** What workers on it run. */
  readonly types: Set<string>
}

/** Mills on one store are asked once. */
function distinctStores(mills: readonly JoinedMill[]): readonly [Store, ...Store[]] {
  const stores: Store[] = []
  for (const { engine, events } of mills) {
    const same = stores.find(({ engine: known }) => known.threadUrl !== null && known.threadUrl === engine.threadUrl)
    const store = same ?? { engine, types: new Set<string>() }
    if (same === undefined) stores.push(store)
    events.on('worker.started', ({ types }) => {
      for (const type of types) store.types.add(type)
    })
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
    ...(first.records !== undefined && { records: first.records }),
  }
}

/** Only the oldest job is looked for in all of them: nothing that observes asks for the others. */
function joinInspectors(first: Inspector, engines: readonly JoinedMill['engine'][]): Inspector {
  return {
    find: (ids) => first.find(ids),
    list: (filter) => first.list(filter),
    history: (id) => first.history(id),
    waitFor: (id, wait) => first.waitFor(id, wait),
    oldestDue: async () => {
      const found = await Promise.all(engines.map(({ inspector }) => inspector?.oldestDue() ?? null))
      return found.filter((job) => job !== null).sort((a, b) => a.runAtMs - b.runAtMs)[0] ?? null
    },
  }
}

async function joinCounts(stores: readonly Store[]): Promise<Counts> {
  const counted = await Promise.all(stores.map(async ({ engine, types }) => ({ types, counts: await engine.counts() })))
  const joined: Record<string, TypeCounts> = {}
  const worked = new Set<string>()
  for (const { counts, types } of counted) {
    for (const [type, found] of Object.entries(counts)) {
      const known = joined[type]
      if (!types.has(type)) joined[type] ??= found
      else if (known === undefined || !worked.has(type)) joined[type] = found
      else joined[type] = sum(known, found)
      if (types.has(type)) worked.add(type)
    }
  }
  return joined
}

function sum(a: TypeCounts, b: TypeCounts): TypeCounts {
  return {
    ready: a.ready + b.ready,
    delayed: a.delayed + b.delayed,
    inProgress: a.inProgress + b.inProgress,
    completed: a.completed + b.completed,
    dead: a.dead + b.dead,
  }
}
