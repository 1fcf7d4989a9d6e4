import type { Report, Rule } from '../check.ts'
import type { Ask, Evidence, JobStory } from '../evidence.ts'

/** Records of one key run in the order in which they arrived, one at a time. */
export const orderByKey: Rule = {
  name: 'order-by-key',
  promise: 'A job begins only after those of its key that were acknowledged before it was asked for have ended',
  excuse: ({ order }) => (order === 'per-key' ? null : `its order is '${order}'`),
  judge(evidence, report) {
    const keyed = [...evidence.jobs.values()].flatMap((story) =>
      story.ask?.job.key === undefined ? [] : [{ story, ask: story.ask }],
    )
    for (const group of Map.groupBy(keyed, ({ ask: { job } }) => `${job.type}\n${job.key}`).values()) {
      for (const one of group) for (const before of group) judgePair(evidence, before, one, report)
    }
  },
}

interface Keyed {
  readonly story: JobStory
  readonly ask: Ask
}

function judgePair({ trouble }: Evidence, before: Keyed, one: Keyed, report: Report): void {
  if (before.ask.answeredMs === null || before.ask.answeredMs > one.ask.atMs) return
  const beganMs = Math.min(...one.story.starts.flatMap(({ beginMs }) => beginMs ?? []))
  if (beganMs === Number.POSITIVE_INFINITY) return
  const hasEnded = before.story.starts.some(({ settles }) =>
    settles.some(
      ({ outcome, done, askedMs }) =>
        done !== 'no' && askedMs < beganMs && (outcome.kind === 'complete' || outcome.kind === 'dead'),
    ),
  )
  if (hasEnded) return
  if (trouble.store.meets(before.ask.atMs, beganMs)) {
    report.unjudged('keys of a time at which the store was struck')
    return
  }
  report.violation(
    one.story.id,
    `job ${one.story.id} of the key ${one.ask.job.key} began before job ${before.story.id}, which stands before it, had ended`,
  )
}
