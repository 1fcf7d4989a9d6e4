import { CANNOT_DRAIN, pausesOf, presenceOf } from '../engine/capability-checks.ts'
import type { Actor } from '../engine/dead-letters.ts'
import type { Engine } from '../engine/engine.ts'
import { isOfType, stopName } from '../engine/pauses.ts'
import type { WithPresence } from '../engine/presence.ts'
import { MillraceError, OptionError, UnsupportedError } from '../errors.ts'

/**
 * Asks one worker, of whatever process, to take no more jobs, finish those that it runs, and stop as on SIGTERM. It obeys
 * within a second, as it does a pause. False if it was asked already.
 */
export async function drainWorker(engine: Engine & WithPresence, id: string, by: Actor): Promise<boolean> {
  const pauses = pausesOf(engine)
  if (pauses.all === undefined) throw new UnsupportedError({ engine: engine.name, limit: CANNOT_DRAIN })
  const [beats, kept] = await Promise.all([presenceOf(engine).list(), pauses.all()])
  const living = new Map(beats.flatMap(({ instance, work }) => (work === undefined ? [] : [[instance, work] as const])))
  const names = new Set([...living].map(([worker, { startedAtMs }]) => stopName(worker, startedAtMs)))
  // Of workers that were killed before they could remove them.
  const left = kept.filter((pause) => !isOfType(pause) && !names.has(pause.type))
  await Promise.all(left.map(({ type }) => pauses.resume(type)))
  const work = living.get(id)
  if (work?.drains === true) return pauses.pause(stopName(id, work.startedAtMs), by)
  if (beats.some(({ instance }) => instance === id)) {
    throw new OptionError(
      `the worker '${id}' is of an earlier version or of another program, and hears no such request; send SIGTERM to its process`,
    )
  }
  throw new MillraceError('ERR_RECORD_UNKNOWN', `no worker '${id}' says that it lives; look at the list of workers`)
}
