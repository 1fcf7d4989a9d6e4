import type { Report, Rule } from '../check.ts'
import type { Ask, Evidence, JobStory } from '../evidence.ts'
import { isAcknowledged, mayBeActed, mayBeUndone, mayHave } from '../life.ts'
import { mayBeRemoved } from '../removals.ts'

/** Acknowledged jobs are there, or a recorded call ended them; batches and transactions are whole. */
export const acknowledged: Rule = {
  name: 'I1',
  promise: 'A job that was acknowledged is never lost, and one that was rolled back never runs',
  judge(evidence, report) {
    for (const story of evidence.jobs.values()) judgeJob(evidence, story, report)
    if (evidence.capabilities.enqueueAtomic && evidence.final.canFind) judgeBatches(evidence, report)
  },
}

function judgeJob(evidence: Evidence, story: JobStory, report: Report): void {
  const { id, asks, starts, ask } = story
  const isThere = evidence.final.jobs.has(id) || starts.length > 0
  if (asks.length === 0 && starts.length > 0) report.violation(id, `job ${id} was started, and was never enqueued`)
  if (isThere && asks.length > 0 && asks.every(({ status }) => status === 'rolled-back')) {
    report.violation(id, `job ${id} is there though the transaction that it was enqueued in was rolled back`)
  }
  if (ask === null || !isAcknowledged(story)) return
  if (mayBeUndone(evidence, story)) {
    report.unjudged('jobs of a time that a fault may have undone')
    return
  }
  if (!evidence.final.canFind) judgeByHistory(evidence, story, report)
  else judgeByStore(evidence, story, report)
}

function judgeByStore(evidence: Evidence, story: JobStory, report: Report): void {
  const { id } = story
  const view = evidence.final.jobs.get(id)
  if (view !== undefined) {
    const act = { cancelled: 'cancel', discarded: 'discard' } as const
    if ((view.state === 'cancelled' || view.state === 'discarded') && !mayBeActed(story, act[view.state])) {
      report.violation(id, `job ${id} is ${view.state}, and no call asked for that`)
    }
    return
  }
  const mayHaveFinished =
    mayHave(story, 'complete', 'dead') || mayBeActed(story, 'cancel') || story.ask?.job.latest !== undefined
  if (!mayHaveFinished) report.violation(id, `job ${id} was acknowledged and is gone, and it had never finished`)
  else if (!mayBeRemoved(evidence, story)) {
    report.violation(id, `job ${id} was acknowledged and is gone, and nothing that was asked for removes it`)
  }
}

/** A log has no states of jobs: each must have been completed, or be among the dead letters, or have been removed from them. */
function judgeByHistory({ final }: Evidence, story: JobStory, report: Report): void {
  const { id } = story
  if (mayHave(story, 'complete') || final.letters.has(id)) return
  if (mayHave(story, 'dead') && mayBeActed(story, 'purge', 'erase', 'discard')) return
  report.violation(id, `job ${id} was acknowledged, was never completed and is no dead letter`)
}

/** Of a batch without an answer all jobs are there, or none. */
function judgeBatches(evidence: Evidence, report: Report): void {
  const asks = [...evidence.jobs.values()].flatMap((story) =>
    story.asks.length === 1 && story.ask?.status === 'unknown' && story.ask.from !== 'foreign' && isPlain(story)
      ? [{ story, ask: story.ask }]
      : [],
  )
  const batches = Map.groupBy(asks, ({ ask }) => batchOf(ask))
  for (const batch of batches.values()) {
    if (batch.some(({ story }) => mayBeUndone(evidence, story))) {
      report.unjudged('batches of a time that a fault may have undone')
      continue
    }
    const there = batch.filter(({ story }) => evidence.final.jobs.has(story.id) || story.starts.length > 0)
    const missing = batch.find(({ story }) => !there.some((other) => other.story === story))?.story.id ?? null
    if (there.length > 0 && missing !== null) {
      report.violation(
        missing,
        `of a batch of ${batch.length} jobs ${there.length} were stored and job ${missing} was not`,
      )
    }
  }
}

/** Jobs enqueued within one transaction are one batch, however many calls it took. */
function batchOf({ transaction, batch }: Ask): string {
  return transaction === null ? `batch ${batch}` : `transaction ${transaction}`
}

/** Surely stored if its batch was, and not removed since. */
function isPlain({ ask, acts }: JobStory): boolean {
  return ask !== null && ask.job.key === undefined && ask.job.latest === undefined && acts.length === 0
}
