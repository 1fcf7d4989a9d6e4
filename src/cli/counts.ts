/** Counts by state, as `stats`, `top` and the tour show them. */
import type { Counts, TypeCounts } from '../engine/engine.ts'
import type { Column } from './table.ts'
import type { Style } from './terminal.ts'

const STATES: readonly { readonly title: string; readonly name: keyof TypeCounts; readonly style: Style }[] = [
  { title: 'READY', name: 'ready', style: 'blue' },
  { title: 'DELAYED', name: 'delayed', style: 'blue' },
  { title: 'RUNNING', name: 'inProgress', style: 'cyan' },
  { title: 'COMPLETED', name: 'completed', style: 'green' },
  { title: 'DEAD', name: 'dead', style: 'red' },
]

export const COUNT_COLUMNS: readonly Column[] = STATES.map(({ title }) => ({ title, align: 'right' }))

export function countCells(of: TypeCounts, paint: (style: Style, text: string) => string): readonly string[] {
  return STATES.map(({ name, style }) => paint(of[name] === 0 ? 'dim' : style, String(of[name])))
}

export const NO_COUNTS: TypeCounts = { ready: 0, delayed: 0, inProgress: 0, completed: 0, dead: 0 }

export function totalOf(counts: Counts): TypeCounts {
  return Object.values(counts).reduce(sum, NO_COUNTS)
}

function sum(left: TypeCounts, right: TypeCounts): TypeCounts {
  return {
    ready: left.ready + right.ready,
    delayed: left.delayed + right.delayed,
    inProgress: left.inProgress + right.inProgress,
    completed: left.completed + right.completed,
    dead: left.dead + right.dead,
  }
}
