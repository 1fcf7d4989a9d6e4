import type { Rule } from '../check.ts'
import { pausesOf } from '../pauses.ts'

/** A pause is known to every worker within this. */
const PAUSE_MS = 1_000

/** A paused type starts nothing. */
export const pausing: Rule = {
  name: 'pauses',
  promise: 'A second after its type was paused no job of it is claimed until it is resumed',
  judge(evidence, report) {
    const pauses = pausesOf(evidence)
    if (!pauses.hasAny) return
    for (const { source, atMs, givenMs, by, worker, starts, paused } of evidence.claims) {
      if (source !== 'ready' || givenMs === null) continue
      for (const { lease } of starts ?? []) {
        const sinceMs = pauses.pausedSinceMs(lease.type, givenMs)
        if (sinceMs === null || sinceMs > atMs) continue
        if (!paused.includes(lease.type) && atMs - sinceMs < PAUSE_MS) continue
        if (evidence.trouble.ofProcess(by).meets(sinceMs, givenMs)) {
          report.unjudged('claims of workers that were struck, or whose store was, after a pause')
        } else {
          const afterMs = Math.round(atMs - sinceMs)
          report.violation(
            lease.id,
            `${worker} claimed job ${lease.id} ${afterMs} ms after its type '${lease.type}' was paused`,
          )
        }
      }
    }
  },
}
