import { inspectorOf } from '../engine/admission.ts'
import type { Engine } from '../engine/engine.ts'
import { JobEndedError, UnknownJobError, WaitTimeoutError } from '../errors.ts'
import { type OptionNames, refuseUnknown } from '../job/known-options.ts'
import { type Duration, parseDurationMs } from '../time/duration.ts'

export interface ResultWait {
  /** 30 s unless told. */
  readonly timeout?: Duration
  readonly signal?: AbortSignal
}

const WAIT_NAMES: OptionNames<ResultWait> = { timeout: true, signal: true }

/** What a job's handler returned, as JSON gave it back. */
export async function awaitResult(engine: Engine, id: string, wait: ResultWait): Promise<unknown> {
  refuseUnknown(wait, WAIT_NAMES, 'result')
  const waitMs = parseDurationMs(wait.timeout ?? '30s', 'timeout')
  const signal = wait.signal ?? new AbortController().signal
  const view = await inspectorOf(engine).waitFor(id, { waitMs, signal })
  if (view === null) throw new UnknownJobError(id)
  if (view.state === 'completed') return view.result
  if (view.ended !== null) throw new JobEndedError('ERR_JOB_ENDED', `job ${id} was ${view.ended}; it has no result`)
  if (view.state === 'dead_letter') {
    throw new JobEndedError('ERR_JOB_DEAD', `job ${id} is a dead letter: ${view.error?.message ?? 'no error recorded'}`)
  }
  signal.throwIfAborted()
  throw new WaitTimeoutError(`the result of job ${id}`, waitMs)
}
