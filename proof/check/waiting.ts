/** When a job surely could be claimed: it was acknowledged, due, not held back and not leased. */
import type { Ask, Evidence, JobStory, Start } from './evidence.ts'
import { CLOCK_MS, givenMs, mayBeUndone } from './life.ts'
import { Spans } from './spans.ts'

export interface Wait {
  readonly story: JobStory
  readonly type: string
  readonly priority: number
  readonly fromMs: number
  /** When the claim was asked for that got it, or the end. */
  readonly toMs: number
  /** Its due time by the store; null when it was not claimed afterwards. */
  readonly runAtMs: number | null
}

/**
 * The waits of plain jobs: no latest key, no `after`, no rate limit and no slots. What a claim without an answer may have held is left
 * out: the start after it was by a reaper, or counts more attempts than were seen.
 */
export function waitsOf(evidence: Evidence): readonly Wait[] {
  const limited = limitedTypes(evidence)
  const waits: Wait[] = []
  for (const story of evidence.jobs.values()) {
    const { ask } = story
    if (ask === null || ask.job.latest !== undefined || ask.job.after !== undefined || limited.has(ask.job.type))
      continue
    // A rejected claim gives back what it had, and no entry says when.
    if (ask.status === 'duplicate' || mayBeUndone(evidence, story)) continue
    for (const wait of waitsOfJob(evidence, story, ask)) if (wait.toMs > wait.fromMs) waits.push(wait)
  }
  return waits
}

/** A claim without an answer may have had jobs, and an engine takes them back within this. */
const TAKEN_BACK_MS = 10_000

/** While a claim was under way that was given up or rejected: it may have held jobs for a moment, and no entry says which. */
export function unsureOf({ claims }: Evidence): Spans {
  return new Spans(
    claims.flatMap(({ atMs, givenMs, starts, isGivenUp, waitMs }) =>
      starts === null || isGivenUp ? [{ fromMs: atMs, toMs: givenMs ?? atMs + waitMs + TAKEN_BACK_MS }] : [],
    ),
  )
}

function limitedTypes({ claims }: Evidence): ReadonlySet<string> {
  const types = new Set<string>()
  const seen = new Set<unknown>()
  for (const { subscription } of claims) {
    if (subscription === null || seen.has(subscription)) continue
    seen.add(subscription)
    for (const [type, { limit, slots }] of subscription.types) if (limit !== null || slots !== null) types.add(type)
  }
  return types
}

function waitsOfJob(evidence: Evidence, story: JobStory, ask: Ask): readonly Wait[] {
  const { job } = ask
  const waits: Wait[] = []
  const add = (fromMs: number | null, next: Start | undefined, used: number): void => {
    if (fromMs === null) return
    const toMs = untilMs(evidence, story, fromMs, next, used)
    if (toMs === null) return
    waits.push({ story, type: job.type, priority: job.priority, fromMs, toMs, runAtMs: next?.lease.runAtMs ?? null })
  }
  add(dueMs(evidence, ask), story.starts[0], 0)
  story.starts.forEach((start, index) => {
    const settled = start.settles.find(({ done }) => done === 'yes')
    if (settled === undefined || start.settles.length > 1 || settled.answeredMs === null) return
    const { kind, delayMs = 0 } = settled.outcome
    if (kind !== 'retry' && kind !== 'release') return
    const used = kind === 'retry' ? start.lease.attempt : start.lease.attempt - 1
    add(settled.answeredMs + delayMs + CLOCK_MS, story.starts[index + 1], used)
  })
  return waits
}

/** When it was there and due for sure. */
function dueMs({ trouble }: Evidence, { atMs, wallMs, answeredMs, job }: Ask): number | null {
  if (answeredMs === null) return null
  const { delayMs = 0, runAtMs } = job
  if (runAtMs === undefined) return answeredMs + delayMs + CLOCK_MS
  const waitMs = Math.max(0, runAtMs - wallMs)
  return trouble.wallClock.meets(atMs, answeredMs + waitMs) ? null : answeredMs + waitMs + CLOCK_MS
}

/** Null when it may have been leased meanwhile. */
function untilMs(
  { final, endMs }: Evidence,
  { id, acts }: JobStory,
  fromMs: number,
  next: Start | undefined,
  used: number,
): number | null {
  const acted = acts.filter(
    ({ done, askedMs, answeredMs }) => done !== 'no' && (answeredMs ?? endMs) >= fromMs && askedMs >= 0,
  )
  const actedMs = Math.min(Number.POSITIVE_INFINITY, ...acted.map(({ askedMs }) => askedMs))
  if (next === undefined) return final.jobs.get(id)?.state === 'queued' ? Math.min(actedMs, endMs) : null
  if (next.claim.source === 'expired' || next.lease.attempt !== used + 1) {
    // After a replay the count begins again, and the wait ended when it was asked for.
    return actedMs <= givenMs(next) ? actedMs : null
  }
  return Math.min(actedMs, next.claim.atMs)
}
