import { CANNOT_DRAIN, pausesOf, presenceOf } from '../engine/capability-checks.ts'
import type { Actor } from '../engine/dead-letters.ts'
import type { Engine } from '../engine/engine.ts'
import { isOfLimits } from '../engine/limits.ts'
import { isOfType, type Pause, type PauseStore, stopName } from '../engine/pauses.ts'
import type { Beat, WithPresence } from '../engine/presence.ts'
import { MillraceError, OptionError, UnsupportedError } from '../errors.ts'

/**
 * Asks one worker, of whatever process, to take no more jobs, finish those that it runs, and stop as on SIGTERM. It looks
 * for such requests where it looks for pauses, every second or as soon as it hears of one. False if it was asked already,
 * or stops anyway.
 */
export async function drainWorker(engine: Engine & WithPresence, id: string, by: Actor): Promise<boolean> {
  const pauses = pausesOf(engine)
  if (pauses.all === undefined) throw new UnsupportedError({ engine: engine.name, limit: CANNOT_DRAIN })
  const [beats, kept] = await Promise.all([presenceOf(engine).list(), pauses.all()])
  const beat = beats.find(({ instance }) => instance === id)
  if (beat === undefined) {
    throw new MillraceError('ERR_RECORD_UNKNOWN', `no worker '${id}' says that it lives; look at the list of workers`)
  }
  // It no longer listens, and need not.
  if (beat.status === 'SHUTTING_DOWN') return false
  if (beat.work?.drains !== true) {
    throw new OptionError(
      `the worker '${id}' is of an earlier version or of another program, and hears no such request; send SIGTERM to its process`,
    )
  }
  await forgetOthers(pauses, kept, beats)
  return pauses.pause(stopName(id, beat.work.startedAtMs), by)
}

/** Requests to workers that were killed before they could remove them. */
async function forgetOthers(
  pauses: Pick<PauseStore, 'resume'>,
  kept: readonly Pause[],
  beats: readonly Beat[],
): Promise<void> {
  const living = new Set(beats.map(({ instance, work }) => stopName(instance, work?.startedAtMs ?? 0)))
  const left = kept.filter((pause) => !isOfType(pause) && !isOfLimits(pause.type) && !living.has(pause.type))
  await Promise.all(left.map(({ type }) => pauses.resume(type)))
}
