import type { WorkedTypeView } from '../observe/workers.ts'

type HeldType = Pick<WorkedTypeView, 'type' | 'holds'>

/** Which partitions of which types: `bill 0-2,5; mail 1`. A type of which a worker has none is listed too. */
export function heldText(types: readonly HeldType[]): string {
  return types.map(({ type, holds = [] }) => `${type} ${runsOf(holds.map(({ partition }) => partition))}`).join('; ')
}

export function lagOf(types: readonly HeldType[]): number {
  return types.flatMap(({ holds = [] }) => holds).reduce((sum, { lag }) => sum + lag, 0)
}

function runsOf(partitions: readonly number[]): string {
  const runs: [from: number, to: number][] = []
  for (const partition of partitions.toSorted((one, other) => one - other)) {
    const last = runs.at(-1)
    if (last !== undefined && partition === last[1] + 1) last[1] = partition
    else runs.push([partition, partition])
  }
  return runs.length === 0 ? '-' : runs.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(',')
}
