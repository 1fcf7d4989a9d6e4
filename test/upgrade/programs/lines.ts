/** What the programs of the rolling upgrade are told and what they write down. Copied beside each installed package. */
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { defineJob } from 'millrace'
import type { Line } from '../../chaos/history.ts'

/** `retry`: fails once. `die`: fails at every start, and becomes a dead letter. */
export type Deed = 'complete' | 'retry' | 'die'

export interface Orders {
  readonly url: string
  /** Where each process writes its lines. */
  readonly folder: string
  readonly name: string
  readonly seed: number
  /** Neither dependencies nor schedules, which the first packages did not have. */
  readonly plain: boolean
}

export type Note = Line | { readonly what: 'acknowledged'; readonly id: string; readonly deed: Deed } | ErrorNote

/** `refused`: an enqueue. `trouble`: what a worker or its keeper has met. */
interface ErrorNote {
  readonly what: 'refused' | 'trouble'
  readonly code: string
  readonly text: string
}

export const rolling = defineJob({
  type: 'rolling',
  attempts: 2,
  backoff: { kind: 'fixed', delay: '100ms' },
})

export const orders: Orders = JSON.parse(process.argv[2] ?? '')
const file = openSync(join(orders.folder, `${orders.name}-${process.pid}.jsonl`), 'a')

export function note(line: Note): void {
  writeSync(file, `${JSON.stringify(line)}\n`)
}

export function noteError(what: ErrorNote['what'], error: unknown): void {
  note({ what, code: String(Reflect.get(Object(error), 'code')), text: String(error).slice(0, 300) })
  // An old package that refuses the store must not hold up the others.
  tell('progress')
}

/** For the parent, which waits for progress. */
export function tell(what: 'ready' | 'progress'): void {
  process.send?.(what)
}
