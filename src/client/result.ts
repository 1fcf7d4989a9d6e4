import { inspectorOf } from '../engine/capability-checks.ts'
import type { Engine, Inspector } from '../engine/engine.ts'
import { type ErrorCode, JobEndedError, UnknownJobError, WaitTimeoutError } from '../errors.ts'
import type { JobView } from '../job/job.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { isEnded } from '../job/states.ts'
import type { Clock } from '../time/clock.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'

export interface ResultWait {
  /** Default: 30s. It also bounds the wait for a store that cannot be reached. */
  readonly timeout?: Duration
  readonly signal?: AbortSignal
}

const WAIT_NAMES: OptionNames<ResultWait> = { timeout: true, signal: true }

/** The store cannot be read at the moment; that says nothing about the job. */
const PASSING: ReadonlySet<ErrorCode> = new Set(['ERR_STORAGE_OPEN', 'ERR_STORAGE_BUSY', 'ERR_STORAGE_FAILED'])
/** How soon a failed read is retried. */
const AGAIN_MS = 250
/** How long the last read may take when the time is up or the signal aborts. */
const LAST_LOOK_MS = 1_000

/** What the job's handler returned, as JSON. */
export async function awaitResult(engine: Engine, clock: Clock, id: string, wait: ResultWait): Promise<unknown> {
  refuseUnknown(wait, WAIT_NAMES, 'result')
  const waitMs = parseDurationMs(wait.timeout ?? '30s', 'timeout')
  const signal = wait.signal ?? new AbortController().signal
  const view = await viewWithin(inspectorOf(engine), clock, id, { waitMs, signal })
  if (view === null) throw new UnknownJobError(id)
  if (view.state === 'completed') return view.result
  if (isEnded(view.state)) throw new JobEndedError('ERR_JOB_ENDED', `job ${id} was ${view.state}; it has no result`)
  if (view.state === 'dead_letter') {
    throw new JobEndedError('ERR_JOB_DEAD', `job ${id} is a dead letter: ${view.error?.message ?? 'no error recorded'}`)
  }
  signal.throwIfAborted()
  throw new WaitTimeoutError(`the result of job ${id}`, waitMs)
}

/** The job when it is over or the time is up. While the store cannot be read it is tried again. */
async function viewWithin(
  inspector: Inspector,
  clock: Clock,
  id: string,
  { waitMs, signal }: { readonly waitMs: number; readonly signal: AbortSignal },
): Promise<JobView | null> {
  const untilMs = clock.monotonicMs() + waitMs
  const over = new AbortController()
  const late = lateness(clock, waitMs, signal, over.signal)
  let trouble: unknown
  try {
    for (;;) {
      const leftMs = Math.max(0, untilMs - clock.monotonicMs())
      try {
        const view = await Promise.race([inspector.waitFor(id, { waitMs: leftMs, signal }), late])
        if (view !== 'late') return view
      } catch (error) {
        if (!PASSING.has(Reflect.get(Object(error), 'code'))) throw error
        trouble = error
        if (clock.monotonicMs() < untilMs) await clock.sleep(AGAIN_MS, signal)
        if (clock.monotonicMs() < untilMs && !signal.aborted) continue
      }
      signal.throwIfAborted()
      throw new WaitTimeoutError(`the result of job ${id}`, waitMs, { cause: trouble })
    }
  } finally {
    over.abort()
  }
}

/** Resolves when an engine that still looks must not be waited for any longer. */
async function lateness(clock: Clock, waitMs: number, signal: AbortSignal, over: AbortSignal): Promise<'late'> {
  await clock.sleep(waitMs, AbortSignal.any([signal, over]))
  await clock.sleep(LAST_LOOK_MS, over)
  return 'late'
}
