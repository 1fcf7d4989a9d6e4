import type { Report, Rule } from '../check.ts'
import type { Evidence, Start } from '../evidence.ts'
import { givenMs } from '../life.ts'

/** A type's rate limit holds over all workers. */
export const limits: Rule = {
  name: 'limits',
  promise: 'No stretch of `perMs` has more claims of a type than its limit allows',
  excuse: ({ limits: promised }) => (promised === 'shared' ? null : 'it has no rate limits'),
  judge(evidence, report) {
    for (const [type, starts] of limitedStarts(evidence)) {
      const [first] = starts
      const limit = first?.claim.subscription?.types.get(type)?.limit ?? null
      if (limit === null) continue
      const isSame = starts.every(({ claim }) => {
        const other = claim.subscription?.types.get(type)?.limit
        return other?.max === limit.max && other.perMs === limit.perMs
      })
      if (isSame) judgeType(evidence, { type, starts, ...limit }, report)
      else report.unjudged('types with several limits')
    }
  },
}

/** Engines count in whole milliseconds: what is 251 ms apart for them may be 250.01 ms apart. */
const WHOLE_MS = 1

interface Limited {
  readonly type: string
  readonly starts: readonly Start[]
  readonly max: number
  readonly perMs: number
}

function limitedStarts({ claims }: Evidence): ReadonlyMap<string, readonly Start[]> {
  const starts = claims.flatMap((claim) => (claim.source === 'ready' ? (claim.starts ?? []) : []))
  return Map.groupBy(
    starts.filter(({ claim, lease }) => claim.subscription?.types.get(lease.type)?.limit != null),
    ({ lease }) => lease.type,
  )
}

/**
 * Only what surely was within one stretch: a claim was made between its call and its answer. The end of its lease does not
 * say when: an engine may count it from the answer.
 */
function judgeType({ trouble }: Evidence, { type, starts, max, perMs }: Limited, report: Report): void {
  const times = starts
    .map((start) => ({ fromMs: start.claim.atMs, toMs: givenMs(start), start }))
    .sort((a, b) => a.toMs - b.toMs)
  for (const [index, last] of times.entries()) {
    if (index < max) continue
    const window = times.slice(index - max, index + 1)
    const fromMs = Math.min(...window.map((one) => one.fromMs))
    if (last.toMs - fromMs > perMs - WHOLE_MS) continue
    if (trouble.wallClock.meets(fromMs, last.toMs)) {
      report.unjudged('claims while a clock was set')
      continue
    }
    report.violation(
      last.start.lease.id,
      `${max + 1} jobs of type '${type}' were claimed within ${Math.round(last.toMs - fromMs)} ms; its limit is ${max} in ${perMs} ms`,
    )
  }
}
