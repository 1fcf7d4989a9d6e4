import type { Report, Rule } from '../check.ts'
import type { Ask, Evidence, JobStory } from '../evidence.ts'
import { knownMs, mayBeUndone } from '../life.ts'

/** An idempotency key admits one live job. */
export const keys: Rule = {
  name: 'I7',
  promise: 'An idempotency key admits one live job, and a duplicate names the live one',
  excuse: ({ keys: promised }) => (promised === 'unique-live' ? null : `it uses a key otherwise: ${promised}`),
  judge(evidence, report) {
    for (const group of byKey(evidence).values()) {
      judgeLive(evidence, group, report)
      judgeDuplicates(evidence, group, report)
    }
  },
}

interface Keyed {
  readonly story: JobStory
  readonly ask: Ask
}

function byKey({ jobs, capabilities }: Evidence): ReadonlyMap<string, readonly Keyed[]> {
  const asks = [...jobs.values()].flatMap((story) => story.asks.map((ask) => ({ story, ask })))
  const keyed = asks.filter(({ ask }) => ask.job.key !== undefined)
  return Map.groupBy(keyed, ({ ask: { job } }) =>
    capabilities.scope === 'type' ? `${job.type}\n${job.key}` : `${job.key}`,
  )
}

/** Two that were both stored must not have been live at once. */
function judgeLive(evidence: Evidence, group: readonly Keyed[], report: Report): void {
  const stored = group
    .filter(({ story, ask }) => ask === story.ask && (ask.status === 'enqueued' || ask.status === 'replaced'))
    .sort((a, b) => a.ask.atMs - b.ask.atMs)
  stored.forEach(({ story, ask }, index) => {
    const before = stored[index - 1]
    if (before === undefined) return
    if (mayBeUndone(evidence, story) || mayBeUndone(evidence, before.story)) {
      report.unjudged('keys of a time that a fault may have undone')
      return
    }
    const [sinceMs, untilMs] = [knownMs(before.story), mayEndFromMs(before.story)]
    if (sinceMs === null || sinceMs > ask.atMs || (ask.answeredMs ?? ask.atMs) >= untilMs) return
    report.violation(
      story.id,
      `job ${story.id} was stored under the key ${ask.job.key} while job ${before.story.id} was live under it`,
    )
  })
}

/** The first moment at which the job may have ended. A replayed one is live again, but then its key may belong to another. */
function mayEndFromMs({ starts, acts }: JobStory): number {
  const ends = starts.flatMap(({ settles }) =>
    settles.filter(({ outcome, done }) => done !== 'no' && (outcome.kind === 'complete' || outcome.kind === 'dead')),
  )
  const acted = acts.filter(({ done }) => done !== 'no')
  return Math.min(
    Number.POSITIVE_INFINITY,
    ...ends.map(({ askedMs }) => askedMs),
    ...acted.map(({ askedMs }) => askedMs),
  )
}

/** Whether the job surely was over for good from then on. */
function surelyOverMs({ starts, acts }: JobStory): number {
  if (acts.some(({ kind, done }) => (kind === 'replay' || kind === 'undo') && done !== 'no'))
    return Number.POSITIVE_INFINITY
  const ends = starts.flatMap(({ settles }) =>
    settles.flatMap(({ outcome, done, answeredMs }) =>
      done === 'yes' && answeredMs !== null && (outcome.kind === 'complete' || outcome.kind === 'dead')
        ? [answeredMs]
        : [],
    ),
  )
  const cancels = acts.flatMap(({ kind, done, answeredMs }) =>
    kind === 'cancel' && done === 'yes' && answeredMs !== null ? [answeredMs] : [],
  )
  return Math.min(Number.POSITIVE_INFINITY, ...ends, ...cancels)
}

/** A duplicate stands for a job of the key that was there, or may have been. */
function judgeDuplicates(evidence: Evidence, group: readonly Keyed[], report: Report): void {
  const members = new Map(group.map(({ story }) => [story.id, story]))
  for (const { story, ask } of group) {
    if (ask.status !== 'duplicate' || ask.receiptId === story.id) continue
    const live = members.get(ask.receiptId ?? '')
    const sentence = `the duplicate ${story.id} of the key ${ask.job.key} names job ${ask.receiptId}`
    if (live === undefined || live.ask === null) {
      report.violation(story.id, `${sentence}, which was not stored under that key`)
      continue
    }
    if (mayBeUndone(evidence, live)) report.unjudged('keys of a time that a fault may have undone')
    else if (live.ask.atMs > (ask.answeredMs ?? Number.POSITIVE_INFINITY)) {
      report.violation(story.id, `${sentence}, which was asked for only later`)
    } else if (surelyOverMs(live) < ask.atMs) report.violation(story.id, `${sentence}, which had ended before`)
  }
}
