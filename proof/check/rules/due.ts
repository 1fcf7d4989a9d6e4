import type { Report, Rule } from '../check.ts'
import type { Evidence, JobStory, Start } from '../evidence.ts'
import { CLOCK_MS, claimedMs, givenMs, mayBeUndone } from '../life.ts'

/** Nothing starts before its time. */
export const due: Rule = {
  name: 'I11',
  promise: 'A delayed job or retry never starts early on the clock that counts',
  judge(evidence, report) {
    for (const story of evidence.jobs.values()) {
      if (mayBeUndone(evidence, story)) {
        report.unjudged('starts of a time that a fault may have undone')
        continue
      }
      for (const start of story.starts) {
        if (start.claim.source === 'ready') judgeClock(evidence, story, start, report)
      }
      judgeFirst(evidence, story, report)
      judgeRetries(evidence, story, report)
    }
  },
}

/**
 * By the store's own times. Only whole milliseconds are stored. Where nothing can be delayed, the due time is when its producer
 * says that it wrote the job, by any clock.
 */
function judgeClock({ capabilities, trouble }: Evidence, { id }: JobStory, start: Start, report: Report): void {
  if (capabilities.enqueueDelayMaxMs === 0) return
  const atMs = claimedMs(start)
  if (atMs === null || atMs >= Math.floor(start.lease.runAtMs)) return
  if (trouble.wallClock.meets(start.claim.atMs, givenMs(start))) {
    report.unjudged('starts while a clock was set')
    return
  }
  const earlyMs = Math.round(start.lease.runAtMs - atMs)
  report.violation(id, `job ${id} was claimed ${earlyMs} ms before it was due, by the store's clock`)
}

/** By the monotonic clock of the machine, from when it was asked for. */
function judgeFirst({ trouble }: Evidence, { id, ask, starts }: JobStory, report: Report): void {
  const [first] = starts
  // A newer version takes the earlier of two places, so the delay of its own does not count alone.
  if (ask === null || first === undefined || ask.job.latest !== undefined) return
  const { delayMs = 0, runAtMs = null } = ask.job
  const waitMs = runAtMs === null ? delayMs : runAtMs - ask.wallMs
  if (waitMs <= 0) return
  if (trouble.wallClock.meets(ask.atMs, givenMs(first))) {
    report.unjudged('starts while a clock was set')
    return
  }
  const earlyMs = ask.atMs + waitMs - givenMs(first)
  if (earlyMs > CLOCK_MS) {
    report.violation(id, `job ${id} was started ${Math.round(earlyMs)} ms before the time that it was asked for`)
  }
}

function judgeRetries({ capabilities, trouble }: Evidence, { id, starts }: JobStory, report: Report): void {
  starts.forEach((start, index) => {
    const next = starts[index + 1]
    // What was repeated because the first call failed may have been applied by the first.
    const askedMs = Math.min(...start.settles.flatMap((settle) => (settle.done === 'no' ? [] : [settle.askedMs])))
    const settled = start.settles.find(({ done }) => done === 'yes')
    if (next === undefined || settled === undefined || next.claim.source === 'expired') return
    const earlyMs = askedMs + (settled.outcome.delayMs ?? 0) - givenMs(next)
    if (earlyMs <= CLOCK_MS || next.claim.atMs < givenMs(start)) return
    if (trouble.wallClock.meets(askedMs, givenMs(next))) {
      report.unjudged('starts while a clock was set')
      return
    }
    if (capabilities.settle === 'watermark' && trouble.any.meets(askedMs, givenMs(next))) {
      report.unjudged('retries that may not have been committed when a fault struck')
      return
    }
    report.violation(
      id,
      `job ${id} was started ${Math.round(earlyMs)} ms before the delay of its ${settled.outcome.kind} was over`,
    )
  })
}
