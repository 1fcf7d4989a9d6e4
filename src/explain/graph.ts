import { inspectorOf, lookupOf } from '../engine/capability-checks.ts'
import type { Engine, Lookup } from '../engine/engine.ts'
import { UnknownJobError } from '../errors.ts'
import type { JobView } from '../job/job.ts'

/** A job of a flow. */
export interface GraphNode {
  readonly id: string
  readonly type: string
  /** As views show it; `removed` for a predecessor of a flow that is no longer stored. */
  readonly state: string
  /** Its own predecessors, also those outside the graph. */
  readonly after: readonly string[]
}

export const GRAPH_NODES_MAX = 200

/**
 * The predecessors of a job, and theirs, as far as they are stored: nearest first, at most 200, without the job itself.
 * Throws an UnknownJobError for an unknown id.
 *
 * @example
 * for (const { id, state, after } of await graphOf(mill, receipt.id)) console.log(id, state, after)
 */
export async function graphOf({ engine }: { readonly engine: Engine }, id: string): Promise<readonly GraphNode[]> {
  const lookup = lookupOf(engine)
  const nodes = new Nodes(lookup)
  await nodes.addBefore(await found(lookup, id))
  return nodes.stored.filter((node) => node.id !== id)
}

/** A job with all that it comes after and all that comes after it. */
export interface WholeFlow {
  /** The job itself is the first. */
  readonly nodes: readonly GraphNode[]
  /** Whether there are more than are shown. */
  readonly cut: boolean
}

/** Both ways, nearest first, at most 200. Throws an UnknownJobError for an unknown id. */
export async function flowOf({ engine }: { readonly engine: Engine }, id: string): Promise<WholeFlow> {
  const inspector = inspectorOf(engine)
  const job = await found(inspector, id)
  const nodes = new Nodes(inspector)
  // Half of the room is for what comes after, however much comes before.
  await nodes.addBefore(job, GRAPH_NODES_MAX / 2)
  let next = await nodes.add(await inspector.successors([id]))
  while (next.length > 0) next = await nodes.add(await inspector.successors(next.map((view) => view.id)))
  return { nodes: [toNode(job), ...nodes.all.filter((node) => node.id !== id)], cut: nodes.isCut }
}

async function found(lookup: Lookup, id: string): Promise<JobView> {
  const [job = null] = await lookup.find([id])
  if (job === null) throw new UnknownJobError(id)
  return job
}

class Nodes {
  readonly #lookup: Lookup
  readonly #met = new Map<string, GraphNode>()
  isCut = false

  constructor(lookup: Lookup) {
    this.#lookup = lookup
  }

  get all(): readonly GraphNode[] {
    return [...this.#met.values()]
  }

  get stored(): readonly GraphNode[] {
    return this.all.filter(({ state }) => state !== REMOVED)
  }

  async addBefore(job: JobView, max: number = GRAPH_NODES_MAX): Promise<void> {
    let next = job.after?.ids ?? []
    while (next.length > 0) next = (await this.add(next, max)).flatMap(({ after }) => after?.ids ?? [])
  }

  /** Returns those that are new and stored. */
  async add(ids: readonly string[], max: number = GRAPH_NODES_MAX): Promise<readonly JobView[]> {
    const fresh = [...new Set(ids)].filter((id) => !this.#met.has(id))
    const room = fresh.slice(0, Math.max(0, max - this.#met.size))
    if (room.length < fresh.length) this.isCut = true
    if (room.length === 0) return []
    const views = await this.#lookup.find(room)
    for (const [index, id] of room.entries()) {
      const view = views[index] ?? null
      this.#met.set(id, view === null ? { id, type: '', state: REMOVED, after: [] } : toNode(view))
    }
    return views.filter((view) => view !== null)
  }
}

const REMOVED = 'removed'

function toNode(view: JobView): GraphNode {
  return { id: view.id, type: view.type, state: view.state, after: view.after?.ids ?? [] }
}
