import { readFileSync, readlinkSync } from 'node:fs'
import { backgroundClock, type Clock, systemClock, THREAD_STARTED_MS } from '../../time/clock.ts'

/** A monotonic clock that several views of a file may share. */
export interface Timeline {
  /** Two views with the same id can compare their readings. */
  readonly id: string
  /** Whether it is this machine's, and not a clock that was injected. */
  readonly isMachine: boolean
  monotonicMs(): number
}

let machineId: string | null = null
const injected = new WeakMap<Clock, string>()

/** All processes of one start of a machine read the same monotonic clock, unless they were given a namespace of time. */
function thisMachine(): string {
  machineId ??= `${process.platform} ${read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())} ${read(() => readlinkSync('/proc/self/ns/time'))}`
  return machineId
}

/**
 * Empty where the system does not tell. Readings from before a restart of the machine are then taken for this one's,
 * and a lease of before ends within its own length after it.
 */
function read(look: () => string): string {
  try {
    return look()
  } catch {
    return ''
  }
}

export function timelineOf(clock: Clock): Timeline {
  if (clock === systemClock || clock === backgroundClock) {
    return { id: thisMachine(), isMachine: true, monotonicMs: () => clock.monotonicMs() + THREAD_STARTED_MS }
  }
  const id = injected.get(clock) ?? `injected ${crypto.randomUUID()}`
  injected.set(clock, id)
  return { id, isMachine: false, monotonicMs: () => clock.monotonicMs() }
}
