import type { Log } from '../job/definition.ts'
import { errorText } from '../job/error-record.ts'
import type { Clock } from '../time/clock.ts'
import { parseDurationMs } from '../time/duration.ts'
import type { PresetDuty } from './extensions.ts'

/** Returns the function that stops it, which waits for a run that is under way. */
export function startDuty(clock: Clock, { name, every, run }: PresetDuty, log: Log): () => Promise<void> {
  const stopping = new AbortController()
  const everyMs = parseDurationMs(every, 'every')
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await run().catch((error: unknown) => {
        log.error('A duty failed; it is tried again', { duty: name, error: errorText(error), in_ms: everyMs })
      })
      await clock.sleep(everyMs, stopping.signal)
    }
  }
  const done = loop()
  return () => {
    stopping.abort()
    return done
  }
}
