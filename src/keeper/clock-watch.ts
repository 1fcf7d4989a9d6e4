import type { Events } from '../events.ts'
import type { Clock } from '../time/clock.ts'
import { ClockSteps } from '../time/clock.ts'

const watches = new WeakMap<Events, () => void>()

/**
 * Tells of a clock that was set. It is called before every claim and every look of a keeper, so that this is within seconds;
 * workers and keepers of one mill share it, so that it is told once.
 */
export function clockWatch(clock: Clock, events: Events): () => void {
  const known = watches.get(events)
  if (known !== undefined) return known
  const steps = new ClockSteps(clock)
  const look = (): void => {
    const stepMs = steps.take()
    if (stepMs !== 0) events.emit('clock.stepped', { stepMs, atMs: clock.nowMs() })
  }
  watches.set(events, look)
  return look
}
