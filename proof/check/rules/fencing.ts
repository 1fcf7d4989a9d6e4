import { digestOf } from '../../history/recorder.ts'
import type { Report, Rule } from '../check.ts'
import type { Evidence, JobStory, Start } from '../evidence.ts'
import { givenMs, isStoredAgain, lastMoves, mayBeUndone } from '../life.ts'

/** A holder whose lease is gone changes nothing. */
export const fencing: Rule = {
  name: 'I3',
  promise: 'A lease has at most one outcome, none once the job was given to another, and the store has that outcome',
  judge(evidence, report) {
    for (const story of evidence.jobs.values()) {
      if (story.starts.length === 0) continue
      for (const start of story.starts) judgeOnce(story, start, report)
      if (mayBeUndone(evidence, story)) {
        report.unjudged('outcomes of a time that a fault may have undone')
        continue
      }
      judgeLate(evidence, story, report)
      judgeEnded(evidence, story, report)
      if (evidence.final.canFind) judgeStored(evidence, story, report)
    }
  },
}

function judgeOnce({ id }: JobStory, { lease, settles }: Start, report: Report): void {
  const applied = settles.filter(({ done }) => done === 'yes')
  if (applied.length > 1) {
    const kinds = applied.map(({ outcome }) => outcome.kind).join(' and ')
    report.violation(id, `${applied.length} outcomes of one lease of job ${id} were applied: ${kinds} (${lease.token})`)
  }
}

/**
 * Where settling goes by a watermark, the times are those at which handlers began and ended: a member learns that a
 * partition has moved while it settles.
 */
function judgeLate({ capabilities }: Evidence, { id, starts, asks }: JobStory, report: Report): void {
  const isWatermark = capabilities.settle === 'watermark'
  if (isWatermark && asks.length > 1) {
    report.unjudged('outcomes of jobs that may be stored twice')
    return
  }
  for (const start of starts) {
    const applied = start.settles.find(({ done }) => done === 'yes')
    if (applied === undefined) continue
    // A handler that has timed out goes on, and its outcome does not wait for it.
    const settledMs = isWatermark ? Math.min(start.endMs ?? applied.askedMs, applied.askedMs) : applied.askedMs
    const next = starts.find((other) => {
      const otherMs = isWatermark ? (other.beginMs ?? givenMs(other)) : givenMs(other)
      return other.claim.atMs > givenMs(start) && otherMs < settledMs
    })
    if (next === undefined) continue
    report.violation(
      id,
      `the outcome '${applied.outcome.kind}' of job ${id} by ${start.lease.token} was applied ${Math.round(settledMs - givenMs(next))} ms after ${next.lease.token} was given it`,
    )
  }
}

/**
 * What was completed or buried is not handed out again, unless it was replayed. Where settling goes by a watermark, a
 * fault may bring back what was finished above it.
 */
function judgeEnded({ capabilities, trouble }: Evidence, story: JobStory, report: Report): void {
  const { id, starts, acts, asks } = story
  const isWatermark = capabilities.settle === 'watermark'
  if (isWatermark && asks.length > 1) return
  if (isStoredAgain(asks)) {
    report.unjudged('jobs that were asked for again when they had been removed')
    return
  }
  for (const [index, start] of starts.entries()) {
    const ended = start.settles.find(
      ({ done, outcome }) => done === 'yes' && (outcome.kind === 'complete' || outcome.kind === 'dead'),
    )
    const endedMs = ended?.answeredMs ?? null
    if (ended === undefined || endedMs === null) continue
    const next = starts.slice(index + 1).find(({ claim }) => claim.atMs > endedMs)
    if (next === undefined) continue
    // A replay that was answered before this death replayed an earlier one.
    const isReplayed =
      ended.outcome.kind === 'dead' &&
      acts.some(
        ({ kind, done, askedMs, answeredMs }) =>
          kind === 'replay' &&
          done !== 'no' &&
          askedMs < givenMs(next) &&
          (answeredMs ?? Number.POSITIVE_INFINITY) > ended.askedMs,
      )
    if (isReplayed) continue
    if (isWatermark && trouble.any.meets(ended.askedMs, givenMs(next))) {
      report.unjudged('jobs that were finished above a watermark when a fault struck')
    } else {
      report.violation(id, `job ${id} was handed out again though its outcome '${ended.outcome.kind}' had been applied`)
    }
  }
}

function judgeStored({ final }: Evidence, story: JobStory, report: Report): void {
  const { id, ask } = story
  const view = final.jobs.get(id)
  if (view === undefined) return
  // A newer version ends an older one, and no entry of the history names the older.
  if (view.state === 'superseded' && ask?.job.latest !== undefined) return
  // The worker may have been killed before the answer to its claim came.
  if (view.state === 'in_progress') return
  const moves = lastMoves(story).filter(({ to }) => to === view.state)
  if (moves.length === 0) {
    const said = lastMoves(story).map(({ to }) => to)
    report.violation(
      id,
      `job ${id} is ${view.state} though the last that was applied to it leaves it ${said.join(' or ')}`,
    )
    return
  }
  if (view.state !== 'completed') return
  const digest = digestOf(JSON.stringify(view.result ?? null))
  if (!moves.some(({ settle }) => settle?.outcome.digest === digest)) {
    report.violation(id, `the stored result of job ${id} is not that of the completion that was applied`)
  }
}
