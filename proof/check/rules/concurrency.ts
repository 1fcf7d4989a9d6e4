import type { Report, Rule } from '../check.ts'
import type { Claim, Evidence, Start } from '../evidence.ts'

/** A claim gives no more than was asked for, and a worker runs no more at once than it may. */
export const concurrency: Rule = {
  name: 'concurrency',
  promise: 'A claim gives at most what it was asked for, and a worker never runs more at once than its concurrency',
  judge(evidence, report) {
    for (const claim of evidence.claims) judgeClaim(claim, report)
    const running = runningBy(evidence)
    for (const { name, concurrency: bounds } of evidence.processes.values()) {
      for (const [type, most] of Object.entries(bounds ?? {})) {
        const starts = (running.get(name) ?? []).filter(({ lease }) => type === '' || lease.type === type)
        judgeRunning({ name, type, most, starts }, report)
      }
    }
  },
}

function judgeClaim({ worker, max, perType, starts, subscription, source }: Claim, report: Report): void {
  if (starts === null || starts.length === 0) return
  if (starts.length > max) report.violation(null, `a claim of ${worker} for ${max} jobs was given ${starts.length}`)
  const counts = new Map<string, number>()
  for (const { lease } of starts) {
    counts.set(lease.type, (counts.get(lease.type) ?? 0) + 1)
    if (source === 'ready' && subscription !== null && !subscription.types.has(lease.type)) {
      report.violation(
        lease.id,
        `${worker} was given job ${lease.id} of type '${lease.type}', which it did not ask for`,
      )
    }
  }
  for (const [type, bound] of Object.entries(perType)) {
    const count = counts.get(type) ?? 0
    if (count > bound)
      report.violation(null, `a claim of ${worker} for ${bound} jobs of type '${type}' was given ${count}`)
  }
}

function runningBy({ claims }: Evidence): ReadonlyMap<string, readonly Start[]> {
  const starts = claims.flatMap((claim) => (claim.starts ?? []).filter(({ beginMs }) => beginMs !== null))
  return Map.groupBy(starts, ({ by }) => by)
}

interface Running {
  readonly name: string
  readonly type: string
  readonly most: number
  readonly starts: readonly Start[]
}

/** Reasons of an aborted signal after which another handler may start in its place, even if it goes on. */
const PLACE_IS_FREE: ReadonlySet<string> = new Set(['ERR_LEASE_LOST', 'ERR_JOB_TIMEOUT'])

function endOf({ endMs, lostMs, aborted, settles }: Start): number {
  const never = Number.POSITIVE_INFINITY
  const abortedMs = aborted !== null && PLACE_IS_FREE.has(aborted.code) ? aborted.atMs : never
  return Math.min(endMs ?? never, lostMs ?? never, abortedMs, ...settles.map(({ askedMs }) => askedMs))
}

/** A handler has its place until it ends, runs out of time or loses its lease, whichever comes first. */
function judgeRunning({ name, type, most, starts }: Running, report: Report): void {
  const moments = starts.flatMap((start) => {
    const { beginMs, lease } = start
    if (beginMs === null) return []
    const untilMs = Math.max(beginMs, endOf(start))
    return [
      { atMs: beginMs, change: 1, id: lease.id },
      { atMs: untilMs, change: -1, id: lease.id },
    ]
  })
  moments.sort((a, b) => a.atMs - b.atMs || a.change - b.change)
  let count = 0
  for (const { change, id } of moments) {
    count += change
    if (count <= most || change < 0) continue
    const what = type === '' ? 'handlers' : `handlers of type '${type}'`
    report.violation(id, `${name} ran ${count} ${what} at once, and may run ${most}`)
  }
}
