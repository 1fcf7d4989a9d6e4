import { inspectorOf } from '../engine/admission.ts'
import type { Engine } from '../engine/engine.ts'
import type { Outcome } from '../engine/outcome.ts'
import type { Predecessors } from '../job/job.ts'
import { type Predecessor, type Turn, takeTurn } from '../job/predecessors.ts'

/** The engine holds such a job back by itself; the delay is for one that does not. */
export const NOT_YET: Outcome = Object.freeze({ kind: 'release', delayMs: 1_000, reason: 'predecessors' })

export const NOBODY: readonly Predecessor[] = Object.freeze([])

/** Looks up what became of the jobs that a claimed one comes after. */
export async function turnOf(engine: Engine, after: Predecessors): Promise<Turn> {
  const inspector = inspectorOf(engine)
  return takeTurn(after, await Promise.all(after.ids.map((id) => inspector.find(id))))
}
