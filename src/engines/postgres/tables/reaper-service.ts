import { redact } from '../../../job/error-record.ts'
import type { Reaper } from './reaper.ts'

/** A reaper that runs by itself. */
export interface ReaperService {
  /** Lets a run under way come to the end of its pass, then resolves. It may be called twice. */
  stop(): Promise<void>
}

/**
 * Runs at once, and then `REAPER_INTERVAL_SEC` after the end of each run, so that runs never overlap (E32, X186). A run
 * that fails is logged, and the next one comes at its time (E44).
 *
 * @example
 * const service = startReaper(new Reaper(pool))
 * await service.stop()
 */
export function startReaper(reaper: Reaper): ReaperService {
  const { clock, log, settings } = reaper
  const stopping = new AbortController()
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        await reaper.runOnce(stopping.signal)
      } catch (error) {
        const text = redact(error instanceof Error ? error.message : String(error))
        log.error('Reaper run failed', { error: text, next_run_sec: settings.intervalSec })
      }
      await clock.sleep(settings.intervalSec * 1_000, stopping.signal)
    }
  }
  const done = loop()
  return {
    stop: async () => {
      stopping.abort()
      await done
    },
  }
}
