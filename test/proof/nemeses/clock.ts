/**
 * Wall clocks that are set, or run fast or slow. What the contract says of it: docs/operating-*.md, "When a clock is set".
 *
 * Where the processes' own clock counts (SQLite, memory, Kafka), they are on one machine and share a clock; it ends where
 * it was furthest ahead, because a `delay` that was asked for then is due at that time of day and not before. Where the
 * server's clock counts (Postgres, Redis), one process is on a machine of its own; a client's clock is only set back, because
 * a `runAt` is a time of day too.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FakedClock } from '../clocks.ts'
import type { EngineName, Nemesis, Scene } from '../scene.ts'
import { pick } from './random.ts'

const SECOND_MS = 1_000
const STEPS_MS = [30 * SECOND_MS, 90 * SECOND_MS, 600 * SECOND_MS, 3_600 * SECOND_MS]
const RATES = [1.01, 0.99]
const DRIFT_STEP_MS = 50

/** Whether due times are compared with the clocks of the processes. */
export function sharesClock(engine: EngineName): boolean {
  return engine === 'sqlite' || engine === 'memory' || engine === 'kafka'
}

const step: Nemesis = {
  name: 'clock',
  does: 'sets a wall clock forward or back by 30 seconds to an hour, once or twice',
  async strike(scene, random) {
    const { clock, target, isClient } = clockOf(scene, random)
    const steps = Array.from({ length: random() < 0.5 ? 1 : 2 }, () => {
      const byMs = pick(random, STEPS_MS) * (0.5 + random() / 2)
      return isClient || random() < 0.5 ? -byMs : byMs
    })
    const detail = steps.map((byMs) => `${byMs > 0 ? '+' : ''}${Math.round(byMs / SECOND_MS)} s`).join(', then ')
    await scene.during({ nemesis: 'clock', target, detail, allows: ['wall-clock'] }, async () => {
      const startMs = clock.offsetMs
      let furthestMs = startMs
      for (const byMs of steps) {
        clock.set(startMs + byMs)
        furthestMs = Math.max(furthestMs, clock.offsetMs)
        await sleep(500 + random() * 2_000)
      }
      clock.set(sharesClock(scene.store.engine) ? furthestMs : startMs)
    })
  },
}

const drift: Nemesis = {
  name: 'drift',
  does: 'lets a wall clock run one in a hundred too fast or too slow for some seconds',
  async strike(scene, random) {
    const { clock, target } = clockOf(scene, random)
    const rate = pick(random, RATES)
    const forMs = 1_000 + random() * 3_000
    await scene.during({ nemesis: 'drift', target, detail: `${rate}`, allows: ['wall-clock'] }, async () => {
      const startMs = clock.offsetMs
      for (const beganMs = performance.now(); performance.now() - beganMs < forMs; await sleep(DRIFT_STEP_MS)) {
        clock.set(startMs + (performance.now() - beganMs) * (rate - 1))
      }
      // No step at the end: a time server corrects a difference that is as small by slewing.
      if (!sharesClock(scene.store.engine)) clock.set(startMs)
    })
  },
}

interface Chosen {
  readonly clock: FakedClock
  readonly target: string | null
  readonly isClient: boolean
}

function clockOf(scene: Scene, random: () => number): Chosen {
  const process = pick(random, scene.crew.processes)
  const isShared = sharesClock(scene.store.engine)
  const clock = isShared ? scene.machineClock : process.clock
  if (clock === undefined) throw new Error('the clocks of this round cannot be set: libfaketime is missing')
  return { clock, target: isShared ? null : process.name, isClient: !isShared && process.role === 'client' }
}

export const CLOCK_NEMESES: readonly Nemesis[] = [step, drift]
