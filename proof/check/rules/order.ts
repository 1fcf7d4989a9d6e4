import type { Report, Rule } from '../check.ts'
import type { Claim, Evidence, Start } from '../evidence.ts'
import { CLOCK_MS, isHeldUp } from '../life.ts'
import { LongestWaits } from '../longest-waits.ts'
import { pausesOf } from '../pauses.ts'
import { unsureOf, waitsOf } from '../waiting.ts'

/** The most urgent first. */
export const order: Rule = {
  name: 'order',
  promise:
    'Jobs are handed out by priority, within a claim and from one claim to the next, and then by due time where the engine ages',
  excuse: ({ order: promised }) =>
    promised === 'priority' || promised === 'ageing-priority' ? null : `its order is '${promised}'`,
  judge(evidence, report) {
    const claims = evidence.claims.filter(({ source, starts }) => source === 'ready' && (starts?.length ?? 0) > 0)
    for (const claim of claims) {
      if (claim.subscription?.ageingMs != null) report.unjudged('claims with ageing')
      else judgeWithin(evidence, inOrder(claim), report)
    }
    judgeBetween(evidence, claims, report)
  },
}

/** With `priority` alone, jobs of one priority go in the order in which they became ready, and a history does not show that. */
function isByDueTime({ capabilities }: Evidence): boolean {
  return capabilities.order === 'ageing-priority'
}

/** Jobs of types whose tenants have slots of their own stand in another order. */
function inOrder({ starts, subscription }: Claim): readonly Start[] {
  return (starts ?? []).filter(({ lease }) => subscription?.types.get(lease.type)?.slots?.by !== 'tenant')
}

function judgeWithin(evidence: Evidence, starts: readonly Start[], report: Report): void {
  starts.forEach(({ lease }, index) => {
    const before = starts[index - 1]?.lease
    if (before === undefined) return
    const isBefore = lease.priority < before.priority
    const isDueBefore = isByDueTime(evidence) && lease.priority === before.priority && lease.runAtMs < before.runAtMs
    if (!isBefore && !isDueBefore) return
    const why = isBefore ? `is of priority ${lease.priority}, not ${before.priority}` : 'was due before it'
    report.violation(lease.id, `a claim was given job ${lease.id} after job ${before.id}, though it ${why}`)
  })
}

/** Nothing that a claim could have had is more urgent than the least urgent that it was given. */
function judgeBetween(evidence: Evidence, claims: readonly Claim[], report: Report): void {
  const waits = new LongestWaits(waitsOf(evidence))
  const pauses = pausesOf(evidence)
  const unsure = unsureOf(evidence)
  const isAlone = claimsAlone(claims)
  // Waits are added as time goes on, so that those of later jobs are not looked at.
  for (const claim of claims.toSorted((a, b) => a.atMs - b.atMs)) {
    const { atMs, givenMs, subscription, perType, paused, starts } = claim
    const worst = inOrder(claim).at(-1)?.lease
    waits.addUntil(atMs - CLOCK_MS)
    if (worst === undefined || givenMs === null || subscription === null || subscription.ageingMs !== null) continue
    for (const type of subscription.types.keys()) {
      if (paused.includes(type)) continue
      const count = starts?.filter(({ lease }) => lease.type === type).length ?? 0
      if (count >= (perType[type] ?? Number.POSITIVE_INFINITY)) continue
      const wait = waits.moreUrgent({
        type,
        priority: worst.priority,
        dueMs: isAlone.has(claim) && isByDueTime(evidence) ? worst.runAtMs - CLOCK_MS : Number.NEGATIVE_INFINITY,
        untilMs: givenMs,
      })
      if (wait === null) continue
      if (evidence.trouble.any.meets(atMs, givenMs)) report.unjudged('claims while a fault was active')
      else if (unsure.meets(wait.fromMs, givenMs)) report.unjudged('claims while another one was given up or rejected')
      else if (isHeldUp(claim)) report.unjudged('claims whose answer was held up')
      else if (pauses.mayBePaused(type, atMs, givenMs)) report.unjudged('claims around a pause')
      else {
        report.violation(
          wait.story.id,
          `job ${worst.id} of priority ${worst.priority} was handed out while job ${wait.story.id} of priority ${wait.priority}, which goes before it, could be claimed`,
        )
      }
    }
  }
}

/**
 * Claims during which no other one was given jobs. Each of two claims at the same moment skips what the other has locked:
 * priorities hold between them, due times do not.
 */
function claimsAlone(claims: readonly Claim[]): ReadonlySet<Claim> {
  const sorted = claims.toSorted((a, b) => a.atMs - b.atMs)
  let lastMs = Number.NEGATIVE_INFINITY
  return new Set(
    sorted.filter(({ atMs, givenMs }, index) => {
      const isBehind = atMs > lastMs
      lastMs = Math.max(lastMs, givenMs ?? Number.POSITIVE_INFINITY)
      const next = sorted[index + 1]
      return isBehind && (next === undefined || next.atMs > (givenMs ?? Number.POSITIVE_INFINITY))
    }),
  )
}
