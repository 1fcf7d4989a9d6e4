import type { Report, Rule } from '../check.ts'
import type { Evidence, JobStory, Start } from '../evidence.ts'
import { givenMs, isStoredAgain, mayBeUndone } from '../life.ts'

/** A job never starts more often than its attempts allow. */
export const attempts: Rule = {
  name: 'I5',
  promise: 'A job never starts more often than its `attempts`, and is then a dead letter',
  judge(evidence, report) {
    for (const story of evidence.jobs.values()) {
      const allowed = story.ask?.job.attempts
      if (allowed === undefined || story.starts.length === 0) continue
      // Without a reaper a job whose last start was never settled is handed out once more, to be buried and not to run.
      const isBuried = ({ beginMs }: Start): boolean => evidence.capabilities.recovery === 'engine' && beginMs === null
      for (const start of story.starts) {
        const { lease, settles } = start
        if (
          lease.attempt >= allowed &&
          settles.some(({ outcome, done }) => outcome.kind === 'retry' && done === 'yes')
        ) {
          report.violation(story.id, `attempt ${lease.attempt} of job ${story.id} is retried, and it has ${allowed}`)
        }
        if (lease.attempt <= allowed || lease.isJudged === true || isBuried(start)) continue
        report.violation(story.id, `attempt ${lease.attempt} of job ${story.id} was started, and it has ${allowed}`)
      }
      if (mayBeUndone(evidence, story)) report.unjudged('starts of a time that a fault may have undone')
      else if (isStoredAgain(story.asks)) report.unjudged('jobs that were asked for again when they had been removed')
      else judgeStarts(evidence, story, allowed, report)
    }
  },
}

/** Counts starts from one replay to the next. */
function judgeStarts({ capabilities, trouble }: Evidence, story: JobStory, allowed: number, report: Report): void {
  // A log learns of a first start a moment after it, so the next owner may not know of one.
  const isWatermark = capabilities.settle === 'watermark'
  if (isWatermark && story.asks.length > 1) {
    report.unjudged('starts of jobs that may be stored twice')
    return
  }
  if (isWatermark && story.starts.some(isCompleted)) {
    report.unjudged('starts of jobs that were completed and may run again')
    return
  }
  const times = story.starts.flatMap((start) => [start.claim.atMs, givenMs(start)])
  if (trouble.readAgain(story.starts[0]?.lease.type ?? '').meets(Math.min(...times), Math.max(...times))) {
    report.unjudged('starts of jobs that were read again from the beginning')
    return
  }
  let count = 0
  let lastMs = Number.NEGATIVE_INFINITY
  for (const start of story.starts) {
    const isReplayed = story.acts.some(
      ({ kind, done, askedMs, answeredMs }) =>
        kind === 'replay' && done !== 'no' && askedMs < givenMs(start) && (answeredMs ?? givenMs(start)) > lastMs,
    )
    if (isReplayed) count = 0
    lastMs = givenMs(start)
    if (doesCount(start)) count += 1
  }
  const most = isWatermark ? allowed + 1 : allowed
  if (count > most)
    report.violation(story.id, `job ${story.id} was started ${count} times, and it has ${allowed} attempts`)
}

/** A lease that was released, or may have been, gave its attempt back. */
function doesCount({ claim, lease, settles }: Start): boolean {
  if (claim.source === 'expired' || lease.isJudged === true) return false
  return !settles.some(({ outcome, done }) => outcome.kind === 'release' && done !== 'no')
}

function isCompleted({ settles }: Start): boolean {
  return settles.some(({ outcome, done }) => outcome.kind === 'complete' && done !== 'no')
}
