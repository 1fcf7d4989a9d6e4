import type { Report, Rule } from '../check.ts'
import type { Evidence, JobStory, Start } from '../evidence.ts'
import { givenMs, mayBeUndone, predecessorOf } from '../life.ts'

/** A job with `after` waits for those that it names. */
export const dependencies: Rule = {
  name: 'dependencies',
  promise: 'A job never starts before those that it comes after are over, and runs only if `ifDead` allows it',
  excuse: ({ dependencies: promised }) => (promised ? null : 'it has no dependencies'),
  judge(evidence, report) {
    for (const story of evidence.jobs.values()) {
      const after = story.ask?.job.after
      if (after === undefined) continue
      for (const first of after.ids) {
        const before = predecessorOf(evidence, story, first)
        if (before === undefined || before.asks.length === 0) {
          report.unjudged('jobs after one that the history does not know')
          continue
        }
        if (mayBeUndone(evidence, before)) report.unjudged('jobs after one that a fault may have undone')
        else
          for (const start of story.starts) judgeStart(evidence, { story, before, start, ifDead: after.ifDead }, report)
      }
    }
  },
}

interface Pair {
  readonly story: JobStory
  readonly before: JobStory
  readonly start: Start
  readonly ifDead: 'wait' | 'run' | 'die'
}

function judgeStart(evidence: Evidence, { story, before, start, ifDead }: Pair, report: Report): void {
  const { id } = story
  const isGone = !evidence.final.jobs.has(before.id)
  const atMs = givenMs(start)
  if (!mayBeOver(before, ifDead, atMs)) {
    report.violation(
      id,
      `job ${id} was given to ${start.claim.worker} before job ${before.id}, which it comes after, was over`,
    )
    return
  }
  // What is gone leaves no trace of how it ended: a worker takes it for done.
  if (start.beginMs === null || ifDead === 'run' || isGone) return
  const { beginMs } = start
  const mayBeComplete = before.starts.some(({ settles }) =>
    settles.some(({ outcome, done, askedMs }) => outcome.kind === 'complete' && done !== 'no' && askedMs < beginMs),
  )
  if (!mayBeComplete)
    report.violation(id, `job ${id} ran though job ${before.id}, which it comes after, had not completed`)
}

/** Whether the job may have been over by then, in a way that lets the other one be handed out. */
function mayBeOver({ ask, starts, acts }: JobStory, ifDead: Pair['ifDead'], atMs: number): boolean {
  // A dead letter that its own option removes no longer holds anything back.
  const kinds = ifDead === 'wait' && ask?.job.keepDead == null ? ['complete'] : ['complete', 'dead']
  return (
    ask?.job.latest !== undefined ||
    acts.some(({ kind, done, askedMs }) => kind !== 'replay' && kind !== 'undo' && done !== 'no' && askedMs < atMs) ||
    starts.some(({ settles }) =>
      settles.some(({ outcome, done, askedMs }) => done !== 'no' && kinds.includes(outcome.kind) && askedMs < atMs),
    )
  )
}
