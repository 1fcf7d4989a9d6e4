import type { TypeCounts } from './engine.ts'

/** The counts of a type without jobs. */
export const NO_JOBS: TypeCounts = Object.freeze({ ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 })

export function addCounts(one: TypeCounts, other: TypeCounts): TypeCounts {
  return {
    ready: one.ready + other.ready,
    delayed: one.delayed + other.delayed,
    inProgress: one.inProgress + other.inProgress,
    completed: one.completed + other.completed,
    dead: one.dead + other.dead,
  }
}
