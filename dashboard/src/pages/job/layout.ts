/** The layout of a flow: each job in a column after its predecessors. */
import type { GraphNode } from '../../api/shapes.ts'

export interface Placed extends GraphNode {
  readonly column: number
  readonly row: number
}

export interface Layout {
  readonly nodes: readonly Placed[]
  readonly edges: readonly { readonly from: Placed; readonly to: Placed }[]
  readonly columns: number
  readonly rows: number
}

export function layOut(nodes: readonly GraphNode[]): Layout {
  const columnOf = columnsOf(nodes)
  const filled = new Map<number, number>()
  const placed = nodes.map((node) => {
    const column = columnOf(node.id)
    const row = filled.get(column) ?? 0
    filled.set(column, row + 1)
    return { ...node, column, row }
  })
  const byId = new Map(placed.map((node) => [node.id, node]))
  const edges = placed.flatMap((to) =>
    to.after.flatMap((id) => {
      const from = byId.get(id)
      return from === undefined ? [] : [{ from, to }]
    }),
  )
  return { nodes: placed, edges, columns: Math.max(0, ...filled.keys()) + 1, rows: Math.max(1, ...filled.values()) }
}

/**
 * As far to the right as its successors allow, so that lines are short. Cycles cannot be enqueued, but one in the data must
 * not hang the page.
 */
function columnsOf(nodes: readonly GraphNode[]): (id: string) => number {
  const successors = new Map<string, string[]>(nodes.map(({ id }) => [id, []]))
  for (const { id, after } of nodes) for (const before of after) successors.get(before)?.push(id)
  const known = new Map<string, number>()
  const fromEnd = (id: string): number => {
    const found = known.get(id)
    if (found !== undefined) return found
    known.set(id, 0)
    const steps = Math.max(-1, ...(successors.get(id) ?? []).map(fromEnd)) + 1
    known.set(id, steps)
    return steps
  }
  const longest = Math.max(0, ...nodes.map(({ id }) => fromEnd(id)))
  return (id) => longest - fromEnd(id)
}
