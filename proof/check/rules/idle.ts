import type { Report, Rule } from '../check.ts'
import type { Claim, Evidence } from '../evidence.ts'
import { CLOCK_MS, isHeldUp } from '../life.ts'
import { pausesOf } from '../pauses.ts'
import { firstIndex, type Spans } from '../spans.ts'
import { unsureOf, type Wait, waitsOf } from '../waiting.ts'

/** Sooner than this the store may have looked before the job was there. */
const WAITED_MS_MIN = 200

export const idle: Rule = {
  name: 'idle',
  promise: 'No claim with room comes back empty while a job that it could have was there all the time',
  excuse: ({ recovery }) =>
    recovery === 'engine'
      ? 'the store decides which of its members may have a job, and a history does not show it'
      : null,
  judge(evidence, report) {
    const empty = evidence.claims.filter(
      ({ source, starts, givenMs, atMs, waitMs, isGivenUp }) =>
        source === 'ready' &&
        starts?.length === 0 &&
        !isGivenUp &&
        givenMs !== null &&
        givenMs - atMs >= Math.max(WAITED_MS_MIN, waitMs * 0.8),
    )
    if (empty.length === 0) return
    const unsure = unsureOf(evidence)
    const byType = waitsByType(waitsOf(evidence))
    for (const claim of empty) judgeClaim(evidence, { claim, byType, unsure }, report)
  },
}

/** By their beginning; `longest` has for each place the wait up to it that ends last. */
interface TypeWaits {
  readonly waits: readonly Wait[]
  readonly longest: readonly Wait[]
}

function waitsByType(waits: readonly Wait[]): ReadonlyMap<string, TypeWaits> {
  const groups = Map.groupBy(waits, ({ type }) => type)
  return new Map(
    [...groups].map(([type, own]) => {
      const sorted = own.toSorted((a, b) => a.fromMs - b.fromMs)
      const longest: Wait[] = []
      for (const wait of sorted) {
        const before = longest.at(-1)
        longest.push(before !== undefined && before.toMs >= wait.toMs ? before : wait)
      }
      return [type, { waits: sorted, longest }]
    }),
  )
}

interface Empty {
  readonly claim: Claim
  readonly byType: ReadonlyMap<string, TypeWaits>
  readonly unsure: Spans
}

function judgeClaim(evidence: Evidence, { claim, byType, unsure }: Empty, report: Report): void {
  const { atMs, givenMs, worker, max, perType, paused, subscription } = claim
  if (givenMs === null || max < 1 || subscription === null) return
  for (const type of subscription.types.keys()) {
    const own = byType.get(type)
    if (own === undefined || perType[type] === 0 || paused.includes(type)) continue
    const index = firstIndex(own.waits.length, (place) => (own.waits[place]?.fromMs ?? 0) > atMs - CLOCK_MS) - 1
    const wait = own.longest[index]
    if (wait === undefined || wait.toMs < givenMs) continue
    if (evidence.trouble.any.meets(atMs, givenMs)) report.unjudged('empty claims while a fault was active')
    else if (isHeldUp(claim)) report.unjudged('claims whose answer was held up')
    else if (pausesOf(evidence).mayBePaused(type, atMs, givenMs)) report.unjudged('empty claims around a pause')
    else if (unsure.meets(wait.fromMs, givenMs)) {
      report.unjudged('empty claims while another one was given up or rejected')
    } else {
      report.violation(
        wait.story.id,
        `${worker} waited ${Math.round(givenMs - atMs)} ms for work and was given none, and job ${wait.story.id} could be claimed all the time`,
      )
    }
  }
}
