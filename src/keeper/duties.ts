import { schedulesOf } from '../engine/capability-checks.ts'
import { sharedWait } from '../time/clock.ts'
import type { Duty, LeadershipTerm } from './leader-election.ts'
import { FIRST_PASS_MS, type KeeperParts, type ScheduleParts } from './parts.ts'
import { reapOnce } from './reaper.ts'
import { type RetentionPolicy, retainOnce } from './retention.ts'
import { fire, setBack } from './schedule-ticks.ts'

const REAP_BATCH = 500
/** A schedule that another process has just changed is looked at again this soon. */
const CHANGED_MS = 100
/** Keepers of engines without leadership, started together, must not reap together. */
const JITTER = 0.1

/** Recovers the jobs of dead workers, at once and then every `everyMs` or up to a tenth sooner, never later. */
export function reapDuty(parts: KeeperParts, worker: string, everyMs: number): Duty {
  return {
    name: 'reap',
    perform: async ({ signal }) => {
      const waitMs = everyMs * (1 - JITTER + JITTER * parts.random())
      await reapOnce({ ...parts, worker }, REAP_BATCH, signal)
      return waitMs
    },
  }
}

const RETAIN_MS = 3_600_000

/** Removes finished jobs by the policy: soon after it leads, however often processes restart, then hourly. */
export function retentionDuty(parts: KeeperParts, policy: RetentionPolicy): Duty {
  const begun = new WeakSet<AbortSignal>()
  return {
    name: 'retention',
    perform: async ({ signal }) => {
      const isFirst = !begun.has(signal)
      begun.add(signal)
      if (isFirst) return sharedWait(parts.clock, FIRST_PASS_MS)
      await retainOnce(parts, policy, signal)
      return RETAIN_MS
    },
  }
}

/**
 * Fires schedules when they are due, and sleeps until the next one is; schedules that other processes add or change are
 * seen after `intervalMs` at most. A tick is late, not missed, up to twice that.
 */
export function schedulesDuty(parts: ScheduleParts, keeper: string, intervalMs: number): Duty {
  const looked = new WeakMap<AbortSignal, number>()
  return {
    name: 'schedules',
    perform: async (term) => {
      const nowMs = parts.clock.nowMs()
      // The leader before may have known another time; so may this process at its last look.
      const maySetBack = nowMs < (looked.get(term.signal) ?? Number.POSITIVE_INFINITY)
      looked.set(term.signal, nowMs)
      return fireDue(parts, { keeper, intervalMs, maySetBack }, term)
    },
    onChange: (wake) => {
      const stops = [parts.events.on('schedule.changed', wake), parts.events.on('clock.stepped', wake)]
      return () => {
        for (const stop of stops) stop()
      }
    },
  }
}

async function fireDue(
  parts: ScheduleParts,
  { keeper, intervalMs, maySetBack }: { keeper: string; intervalMs: number; maySetBack: boolean },
  { signal, holds }: LeadershipTerm,
): Promise<number> {
  const { clock, engine, events } = parts
  let wakeMs = clock.nowMs() + sharedWait(clock, intervalMs)
  for (const record of await schedulesOf(engine).list()) {
    let current: typeof record | null = record
    try {
      if (maySetBack) current = await setBack(parts, record)
      while (current?.nextAtMs !== null && current !== null && current.nextAtMs <= clock.nowMs()) {
        if (signal.aborted || !(await holds())) return 0
        current = await fire(parts, current, 2 * intervalMs)
      }
      const againMs = current === null ? clock.nowMs() + CHANGED_MS : current.nextAtMs
      wakeMs = Math.min(wakeMs, againMs ?? wakeMs)
    } catch (error) {
      // One that cannot be fired stays due and is tried again with the next look; the others go on.
      events.emit('keeper.error', { keeper, during: `schedule ${record.name}`, error })
    }
  }
  return Math.max(0, wakeMs - clock.nowMs())
}
