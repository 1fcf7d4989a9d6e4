import type { Enqueued, Mill } from '../client/mill.ts'
import { inspectorOf } from '../engine/admission.ts'
import { UnknownJobError, WaitTimeoutError } from '../errors.ts'
import type { JobView } from '../job/job.ts'
import { systemClock } from '../time/clock.ts'
import { DURATION_MS_MAX, type Duration, parseDurationMs } from '../time/duration.ts'

/**
 * Waits until a job is completed, dead or ended, and resolves with it: unlike `mill.result` a failure is an answer here.
 * The bound is real time (5 s unless told), because a test clock that nobody moves would never give up.
 *
 * @example
 * const job = await settled(mill, receipt)
 * assert.equal(job.state, 'dead_letter')
 */
export async function settled(
  mill: Mill,
  of: string | Enqueued<unknown>,
  wait: { readonly timeout?: Duration } = {},
): Promise<JobView> {
  const id = typeof of === 'string' ? of : of.id
  const timeoutMs = parseDurationMs(wait.timeout ?? '5s', 'timeout')
  const abort = new AbortController()
  const cancelTimer = systemClock.after(timeoutMs, () => abort.abort())
  try {
    const view = await inspectorOf(mill.engine).waitFor(id, { waitMs: DURATION_MS_MAX, signal: abort.signal })
    if (view === null) throw new UnknownJobError(id)
    if (view.state === 'completed' || view.state === 'dead_letter') return view
    const facts = `${view.state}, starts so far: ${view.attempt}; it needs a worker, or a clock that is moved on`
    throw new WaitTimeoutError(`the end of job ${id} (${facts})`, timeoutMs)
  } finally {
    cancelTimer()
  }
}
