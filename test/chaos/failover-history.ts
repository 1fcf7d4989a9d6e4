/** What happened while a primary was killed, and what of it may not have happened. Times are of one process, in milliseconds. */

export interface Acknowledged {
  readonly id: string
  readonly type: string
  /** When the call began, and when it was acknowledged. */
  readonly calledAtMs: number
  readonly atMs: number
  /** Calls for the same work that were rejected before: what they stored is unknown. */
  readonly rejected: number
}

export interface FailoverHistory {
  readonly acknowledged: readonly Acknowledged[]
  /** Outcomes that the engine has accepted, of whatever start. */
  readonly completed: readonly { readonly id: string; readonly atMs: number }[]
  /** When the signal was sent, and when the process had ended. */
  readonly killedAtMs: number
  readonly goneAtMs: number
  /** When the first call was acknowledged by the new primary. */
  readonly resumedAtMs: number
  /** Ids that the store still knows, with the state they ended in. */
  readonly stored: ReadonlyMap<string, string>
}

export interface FailoverPromise {
  /** How long before the kill an acknowledged write may be lost; null: never. */
  readonly windowMs: number | null
  readonly outageMaxMs: number
}

export interface FailoverVerdict {
  readonly violations: readonly string[]
  readonly acknowledged: number
  /** Acknowledged in the window before the kill and gone. */
  readonly lost: number
  /** Completed twice because the first completion was undone or its answer lost. */
  readonly completedTwice: number
  readonly outageMs: number
}

/**
 * Every acknowledged job is completed in the end, unless it was acknowledged within the window before the kill. A job is
 * completed twice only if the first completion was in that window or during the outage.
 */
export function judgeFailover(history: FailoverHistory, promise: FailoverPromise): FailoverVerdict {
  const { acknowledged, completed, killedAtMs, goneAtMs, resumedAtMs, stored } = history
  const fromMs = killedAtMs - (promise.windowMs ?? 0)
  const violations: string[] = []
  let lost = 0
  for (const { id, type, atMs } of acknowledged) {
    const state = stored.get(id)
    if (state === 'completed') continue
    const when = `acknowledged ${Math.round(atMs - killedAtMs)} ms after the kill`
    if (state !== undefined) violations.push(`${type} ${id}, ${when}, is ${state} in the end`)
    else if (promise.windowMs !== null && fromMs <= atMs && atMs <= goneAtMs) lost += 1
    else violations.push(`${type} ${id}, ${when}, is lost`)
  }
  let completedTwice = 0
  for (const [id, times] of Map.groupBy(completed, (one) => one.id)) {
    if (times.length < 2) continue
    completedTwice += 1
    const [first] = times.map(({ atMs }) => atMs).sort((a, b) => a - b)
    // Without a window for jobs there is still one for outcomes: only enqueue waits for replicas.
    const isExcused = first !== undefined && first >= killedAtMs - OUTCOMES_MS && first <= resumedAtMs
    if (!isExcused)
      violations.push(`${id} was completed twice, first ${Math.round((first ?? 0) - killedAtMs)} ms after the kill`)
  }
  const outageMs = Math.round(resumedAtMs - goneAtMs)
  if (outageMs > promise.outageMaxMs) violations.push(`the outage took ${outageMs} ms`)
  return { violations, acknowledged: acknowledged.length, lost, completedTwice, outageMs }
}

/** How long before the kill an outcome may be undone. */
export const OUTCOMES_MS = 1_000
