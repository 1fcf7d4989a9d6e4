import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Engine } from '../engine/engine.ts'
import type { Beat } from '../engine/presence.ts'
import { OptionError } from '../errors.ts'
import { waitAtMost } from '../time/wait.ts'
import type { WorkerParts } from './options.ts'

/** Containers repeat host names and all run as process 1, so a random suffix keeps two workers apart (X116). */
export function newWorkerId(): string {
  return `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`
}

/** Tells the workers of this process from those of one that had the same host name and number before. */
export const PROCESS_TAG: string = randomUUID()

/** A worker says every 10 s that it lives. One that is heard from another host but not in this time has died. */
const HEARD_MS = 15_000
/** How long a start waits for the registry. */
const LOOK_MS = 1_000

/** Ids that users have chosen, of workers that start or run here. */
const chosen = new WeakMap<Engine, Set<string>>()

export interface DistinctId {
  readonly id: string
  /** The worker has stopped: another may have its id. */
  release(): void
}

/**
 * The id that a user has chosen for a worker, or, where another living worker has it, that id with a suffix. Two workers of
 * one id would be one line in the registry, and nobody could tell whose job is whose. It is told by `worker.error`. Not
 * refused: a deployment starts the new process before the old one has ended.
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
    `another worker has the id '${given}'; this one is called '${id}'. Give each worker an id of its own, or leave 'id' out`,
  )
  events.emit('worker.error', { worker: id, during: 'start', error })
  return { id, release: () => {} }
}

/** A registry that does not answer, or cannot, is no reason not to start. */
async function livesElsewhere({ engine, clock }: WorkerParts, id: string): Promise<boolean> {
  const { presence } = engine
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
  // The same number on the same host: that process has ended, and this is its successor.
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
