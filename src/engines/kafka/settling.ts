/** What an outcome does to a record's partition. Each answers whose record it was, so that many can be told of at once. */
import type { Outcome } from '../../engine/outcome.ts'
import type { Holding } from './holding.ts'
import type { Grip } from './leases.ts'

/** Settled for good: the next record of its key may run. */
export function finish({ holding, held }: Grip): Holding {
  holding.watermark.finish(held.offset)
  holding.lanes.finish(held)
  return holding
}

/** A dead one is buried first, and finished then. */
export function applyOutcome(grip: Grip, outcome: Exclude<Outcome, { kind: 'dead' }>, nowMs: number): Holding {
  const { holding, held } = grip
  switch (outcome.kind) {
    case 'complete':
      return finish(grip)
    case 'retry':
      holding.watermark.defer(held.offset, nowMs + outcome.delayMs, nowMs)
      break
    case 'release':
      holding.watermark.release(held.offset, nowMs + outcome.delayMs)
      break
    default:
      outcome satisfies never
      return holding
  }
  holding.park(held, nowMs + outcome.delayMs)
  return holding
}
