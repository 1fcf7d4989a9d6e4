import { OptionError } from '../../src/errors.ts'
import { errorText } from '../../src/job/error-record.ts'
import { type OptionNames, refuseUnknown } from '../../src/job/known-options.ts'
import type { Reaper, ReaperResult } from './reaper.ts'

export interface ReaperService {
  /** Resolves after the current pass. It may be called twice. */
  stop(): Promise<void>
}

/** One run over all tables, as it ended. */
export interface ReaperRun {
  readonly durationMs: number
  /** Null if it failed. Tables that were scanned nevertheless are in the log. */
  readonly result: ReaperResult | null
  /** Null if it succeeded. */
  readonly error: string | null
}

export interface ReaperServiceOptions {
  /** From the end of one run to the start of the next. Default: `REAPER_INTERVAL_SEC`. */
  readonly everyMs?: number
  readonly onStarted?: () => void
  readonly onEnded?: (run: ReaperRun) => void
}

const OPTION_NAMES: OptionNames<ReaperServiceOptions> = { everyMs: true, onStarted: true, onEnded: true }

/**
 * Runs at once, then `REAPER_INTERVAL_SEC` after the end of each run, so that runs never overlap. A failed run is logged,
 * and the next one follows as usual.
 *
 * @example
 * const service = startReaper(new Reaper(pool))
 * await service.stop()
 */
export function startReaper(reaper: Reaper, options: ReaperServiceOptions = {}): ReaperService {
  refuseUnknown(options, OPTION_NAMES, 'startReaper')
  const { clock, log, settings } = reaper
  const { everyMs = settings.intervalSec * 1_000, onStarted, onEnded } = options
  if (!(everyMs > 0)) throw new OptionError(`'everyMs' is ${everyMs}; give a number of milliseconds above 0`)
  const stopping = new AbortController()
  let failedRuns = 0
  const run = async (): Promise<void> => {
    const startedAtMs = clock.monotonicMs()
    const ended = (result: ReaperResult | null, error: string | null): void =>
      onEnded?.({ durationMs: clock.monotonicMs() - startedAtMs, result, error })
    onStarted?.()
    try {
      const result = await reaper.runOnce(stopping.signal)
      if (failedRuns > 0) log.info('Reaper works again', { failed_runs: failedRuns })
      failedRuns = 0
      ended(result, null)
    } catch (error) {
      failedRuns += 1
      const text = errorText(error)
      log.error('Reaper run failed', { error: text, failed_runs: failedRuns, next_run_sec: everyMs / 1_000 })
      ended(null, text)
    }
  }
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await run()
      await clock.sleep(everyMs, stopping.signal)
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
