import type { Log } from '../job/definition.ts'
import { errorText } from '../job/error-record.ts'
import type { Clock } from '../time/clock.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'

/** Work beside the jobs, which every process does that has it. It runs at once and then at an interval, never twice at a time. A failure is logged. */
export interface Duty {
  readonly name: string
  readonly every: Duration
  run(): Promise<void>
}

/** Returns the function that stops them, which waits for what is under way. */
export function startDuties(
  duties: readonly Duty[],
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): () => Promise<void> {
  const stopping = new AbortController()
  const repeat = async ({ name, every, run }: Duty): Promise<void> => {
    const everyMs = parseDurationMs(every, 'every')
    while (!stopping.signal.aborted) {
      await run().catch((error: unknown) => {
        log.error('A duty failed; it is tried again', { duty: name, error: errorText(error), in_ms: everyMs })
      })
      await clock.sleep(everyMs, stopping.signal)
    }
  }
  const done = Promise.all(duties.map(repeat))
  return async () => {
    stopping.abort()
    await done
  }
}
