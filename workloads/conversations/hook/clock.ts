/** What the built hook has instead of src/time/clock.ts, which uses `performance`: that takes 2 ms to load. */
import type { Clock } from '../../../src/time/clock.ts'

export const systemClock: Pick<Clock, 'nowMs' | 'monotonicMs' | 'after'> = {
  nowMs: () => Date.now(),
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
}
