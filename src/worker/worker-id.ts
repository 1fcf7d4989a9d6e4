import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Engine } from '../engine/engine.ts'
import { type Beat, presenceIn } from '../engine/presence.ts'
import { OptionError } from '../errors.ts'
import { waitAtMost } from '../time/wait.ts'
import type { WorkerParts } from './options.ts'

/** Containers repeat host names and run as process 1, so a random suffix keeps two workers apart. */
export function newWorkerId(): string {
  return `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`
}

/** Distinguishes this process from an earlier one with the same host name and process id. */
export const PROCESS_TAG: string = randomUUID()

/** Workers report every 10 s. A worker on another host that has not reported in this time is dead. */
const HEARD_MS = 15_000
/** How long a start waits for the list of workers. */
const LOOK_MS = 1_000

/** The user-chosen ids of workers that start or run in this process. */
const chosen = new WeakMap<Engine, Set<string>>()

export interface DistinctId {
  readonly id: string
  /** The worker has stopped: another may use its id. */
  release(): void
}

/**
 * The id that a user chose for a worker, with a suffix if another living worker has it. Two workers with one id would be
 * one line in the list of workers. A `worker.error` event reports the suffix. The start is not refused, because a
 * deployment starts the new process before the old one has ended.
 */
export async function distinctId(parts: WorkerParts, given: string): Promise<DistinctId> {
  const { engine, events } = parts
  const here = chosen.get(engine) ?? new Set<string>()
  chosen.set(engine, here)
  if (!here.has(given)) {
    // Before the look, so that two workers that start at once do not both find it free.
    here.add(given)
    if (!(await livesElsewhere(parts, given))) return { id: given, release: () => here.delete(given) }
    here.delete(given)
  }
  const id = `${given}:${randomBytes(4).toString('hex')}`
  const error = new OptionError(
    `another worker has the id '${given}'; this one is called '${id}'. Give each worker a different id, or leave 'id' out`,
  )
  events.emit('worker.error', { worker: id, during: 'start', error })
  return { id, release: () => {} }
}

/** A store that does not answer must not prevent the start. */
async function livesElsewhere({ engine, clock }: WorkerParts, id: string): Promise<boolean> {
  const presence = presenceIn(engine)
  if (presence === undefined) return false
  const listed = presence.list().catch((): readonly Beat[] => [])
  if (!(await waitAtMost(clock, LOOK_MS, listed))) return false
  const nowMs = clock.nowMs()
  return (await listed).some((beat) => beat.instance === id && isAlive(beat, nowMs))
}

function isAlive({ status, work, atMs }: Beat, nowMs: number): boolean {
  if (status !== 'RUNNING' || work === undefined) return false
  if (work.process === PROCESS_TAG) return true
  if (work.host !== hostname()) return nowMs - atMs < HEARD_MS
  // The same pid on the same host: that process has ended, and this one is its successor.
  return work.pid !== process.pid && isRunning(work.pid)
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return Reflect.get(Object(error), 'code') === 'EPERM'
  }
}
