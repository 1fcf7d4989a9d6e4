import type { Report, Rule } from '../check.ts'
import type { Claim, Evidence, JobStory, Start } from '../evidence.ts'
import { givenMs, isHeldUp, isStoredAgain, mayBeUndone } from '../life.ts'
import { firstIndex } from '../spans.ts'

/** A claim counts as an attempt, a release gives it back, and a crash counts too. */
export const counting: Rule = {
  name: 'I2',
  promise: 'A claim counts as an attempt and a release does not',
  judge(evidence, report) {
    const hidden = evidence.claims.filter((claim) => claim.source === 'ready' && isHidden(evidence, claim))
    for (const story of evidence.jobs.values()) {
      if (story.starts.length === 0) continue
      if (mayBeUndone(evidence, story)) report.unjudged('starts of a time that a fault may have undone')
      else if (evidence.capabilities.settle === 'watermark') judgeLog(story, hidden, report)
      else if (isStoredAgain(story.asks)) report.unjudged('jobs that were asked for again when they had been removed')
      else judgeCounts(story, hidden, report)
    }
  },
}

/** Claims without a full answer, by when they were made: what they took counts, and the history does not show it. */
type Hidden = readonly Claim[]

/**
 * A log stores a start before it is handed out. A claim that a fault holds up meanwhile cannot know whether it was stored, and
 * is answered without it.
 */
function isHidden({ capabilities, trouble }: Evidence, claim: Claim): boolean {
  if (claim.starts === null) return true
  const { atMs, givenMs: answeredMs } = claim
  if (capabilities.settle !== 'watermark' || answeredMs === null) return false
  return isHeldUp(claim) && trouble.store.meets(atMs, answeredMs)
}

/** How long before a start a hidden claim may have been asked that counted for it. */
const HIDDEN_MS = 120_000

function hiddenBetween(hidden: Hidden, type: string, fromMs: number, toMs: number): number {
  const first = firstIndex(hidden.length, (index) => (hidden[index]?.atMs ?? 0) >= fromMs)
  const end = firstIndex(hidden.length, (index) => (hidden[index]?.atMs ?? 0) > toMs)
  return hidden.slice(first, end).filter(({ subscription }) => subscription?.types.has(type) ?? true).length
}

function judgeCounts(story: JobStory, hidden: Hidden, report: Report): void {
  // The least and the most attempts that may be used up.
  let [least, most] = [0, 0]
  let lastMs = story.ask?.atMs ?? Number.NEGATIVE_INFINITY
  for (const start of story.starts) {
    if (start.lease.isJudged === true) return
    const replay = story.acts.find(
      ({ kind, done, askedMs, answeredMs }) =>
        kind === 'replay' &&
        done !== 'no' &&
        askedMs < givenMs(start) &&
        (answeredMs ?? Number.POSITIVE_INFINITY) > lastMs,
    )
    if (replay !== undefined) [least, most] = [0, isBetween(replay, lastMs, givenMs(start)) ? 0 : most]
    const counts = start.claim.source === 'expired' ? 0 : 1
    const { attempt } = start.lease
    if (attempt < least + counts) {
      // Its answer came late: it was given before the ones that were seen first.
      if (start.claim.atMs < lastMs) continue
      unexpected(story, start, `${least + counts} or more`, report)
      return
    }
    const seen = most + counts
    // What a hidden claim was given counts too, and one whose answer came later. A reaper takes over what is leased: then a hidden claim had it.
    const late = story.starts.filter(
      ({ claim }) => claim.atMs < givenMs(start) && (claim.givenMs ?? 0) > givenMs(start),
    )
    const hiddenMost = (): number => hiddenBetween(hidden, start.lease.type, lastMs - HIDDEN_MS, givenMs(start))
    if (attempt > seen + late.length && attempt > seen + late.length + hiddenMost()) {
      unexpected(story, start, `${seen} at most`, report)
      return
    }
    lastMs = givenMs(start)
    ;[least, most] = usedAfter(start)
  }
}

/** One whose answer came late may have been done before an earlier start, and counted for that. */
function isBetween({ done, askedMs, answeredMs }: JobStory['acts'][number], fromMs: number, toMs: number): boolean {
  return done === 'yes' && askedMs >= fromMs && (answeredMs ?? Number.POSITIVE_INFINITY) <= toMs
}

function usedAfter({ lease: { attempt }, settles }: Start): [number, number] {
  const releases = settles.filter(({ outcome, done }) => outcome.kind === 'release' && done !== 'no')
  if (releases.some(({ done }) => done === 'yes')) return [attempt - 1, attempt - 1]
  return [releases.length > 0 ? attempt - 1 : attempt, attempt]
}

function unexpected({ id }: JobStory, { lease }: Start, expected: string, report: Report): void {
  report.violation(
    id,
    `job ${id} was given as attempt ${lease.attempt}; by its claims and releases it had to be ${expected}`,
  )
}

/** A log stores a first start a moment later, so its next owner may not know of it; one that was forgotten once is stored. */
function judgeLog({ id, starts, asks, acts }: JobStory, hidden: Hidden, report: Report): void {
  if (asks.length > 1) {
    report.unjudged('starts of jobs that may be stored twice')
    return
  }
  if (acts.some(({ kind }) => kind === 'replay')) {
    report.unjudged('starts of jobs that were replayed')
    return
  }
  let forgotten = 0
  // One that is only to be buried is no start.
  const counted = starts.filter(({ lease }) => lease.isJudged !== true)
  counted.forEach((start, index) => {
    const before = counted[index - 1]
    if (before === undefined) return
    const [least] = usedAfter(before)
    const hiddenMost = hiddenBetween(hidden, start.lease.type, givenMs(before) - HIDDEN_MS, givenMs(start))
    if (start.lease.attempt > before.lease.attempt + 1 + hiddenMost) {
      report.violation(
        id,
        `job ${id} was given as attempt ${start.lease.attempt} after attempt ${before.lease.attempt}`,
      )
    } else if (start.lease.attempt <= least) forgotten += 1
  })
  if (forgotten > 1) report.violation(id, `${forgotten} starts of job ${id} were forgotten`)
}
