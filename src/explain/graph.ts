import { lookupOf } from '../engine/capability-checks.ts'
import type { Engine, Lookup } from '../engine/engine.ts'
import { UnknownJobError } from '../errors.ts'
import type { JobView } from '../job/job.ts'

/** A job that another one waits for, directly or indirectly. */
export interface GraphNode {
  readonly id: string
  readonly type: string
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
  const [job = null] = await lookup.find([id])
  if (job === null) throw new UnknownJobError(id)
  return nodesBefore(lookup, job)
}

async function nodesBefore(lookup: Lookup, job: JobView): Promise<readonly GraphNode[]> {
  const nodes: GraphNode[] = []
  const met = new Set([job.id])
  let next = job.after?.ids ?? []
  while (next.length > 0 && nodes.length < GRAPH_NODES_MAX) {
    const ids = [...new Set(next)].filter((id) => !met.has(id)).slice(0, GRAPH_NODES_MAX - nodes.length)
    for (const id of ids) met.add(id)
    const found = (await lookup.find(ids)).filter((view) => view !== null)
    nodes.push(...found.map(toNode))
    next = found.flatMap(({ after }) => after?.ids ?? [])
  }
  return nodes
}

function toNode(view: JobView): GraphNode {
  return { id: view.id, type: view.type, state: view.state, after: view.after?.ids ?? [] }
}
