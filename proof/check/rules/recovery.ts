import { isFinished } from '../../../src/job/states.ts'
import type { Report, Rule } from '../check.ts'
import type { Evidence, JobStory, Start } from '../evidence.ts'
import { givenMs, leaseMs, mayBeUndone, predecessorOf } from '../life.ts'
import { pausesOf } from '../pauses.ts'

/** Once all faults are healed everything finishes in time, and what a dead holder had comes back in time. */
export const recovery: Rule = {
  name: 'I6',
  promise: 'Nothing waits for ever: what a dead holder had comes back in time, and without faults everything finishes',
  judge(evidence, report) {
    judgeCalm(evidence, report)
    for (const story of evidence.jobs.values()) {
      if (mayBeUndone(evidence, story)) report.unjudged('jobs of a time that a fault may have undone')
      else {
        judgeEnd(evidence, story, report)
        story.starts.forEach((start, index) => {
          judgeAbandoned(evidence, { story, start, next: story.starts[index + 1] }, report)
        })
      }
    }
  },
}

function judgeCalm({ calm, finishedMs }: Evidence, report: Report): void {
  if (calm === null) {
    report.unjudged('a history that never became calm')
    return
  }
  if (finishedMs === null) {
    report.violation(null, `${calm.boundMs} ms after all faults were healed not everything had finished`)
  } else if (finishedMs - calm.atMs > calm.boundMs) {
    const tookMs = Math.round(finishedMs - calm.atMs)
    report.violation(
      null,
      `everything had finished ${tookMs} ms after all faults were healed, not within ${calm.boundMs} ms`,
    )
  }
}

function judgeEnd(evidence: Evidence, story: JobStory, report: Report): void {
  const { id, ask } = story
  const view = evidence.final.jobs.get(id)
  if (view === undefined || isFinished(view.state) || evidence.calm === null) return
  if (view.state === 'in_progress') {
    report.violation(id, `job ${id} is still leased at the end, by ${view.leaseOwner ?? 'no known owner'}`)
    return
  }
  const { finishedMs, endMs } = evidence
  const isLate = ask !== null && (ask.answeredMs ?? endMs) > (finishedMs ?? endMs)
  if (isLate || mayWait(evidence, story)) {
    report.unjudged('jobs that had to wait beyond the end')
    return
  }
  report.violation(id, `job ${id} is still ${view.state} at the end, and nothing holds it back`)
}

/** It is due later, its type is paused, or it waits for a job that is not over or that is dead. */
function mayWait(evidence: Evidence, story: JobStory): boolean {
  const { id, ask } = story
  const view = evidence.final.jobs.get(id)
  const wallMs = evidence.history.at(-1)?.wallMs ?? 0
  if (view === undefined || view.runAtMs > wallMs) return true
  if (pausesOf(evidence).mayBePaused(view.type, evidence.endMs, evidence.endMs)) return true
  const { ids = [], ifDead } = ask?.job.after ?? view.after ?? {}
  return ids.some((first) => {
    const before = evidence.final.jobs.get(predecessorOf(evidence, story, first)?.id ?? first)
    if (before === undefined) return false
    return !isFinished(before.state) || (before.state === 'dead_letter' && ifDead === 'wait')
  })
}

interface Held {
  readonly story: JobStory
  readonly start: Start
  readonly next: Start | undefined
}

/** A holder that has exited renews no more: within its lease and the engine's bound another claim has the job. */
function judgeAbandoned(evidence: Evidence, { story, start, next }: Held, report: Report): void {
  const { trouble, processes, capabilities } = evidence
  const exitedMs = processes.get(start.by)?.exitedMs ?? null
  if (exitedMs === null || start.settles.some(({ done }) => done !== 'no')) return
  // A job that was not claimed again is judged by its state at the end.
  if (next === undefined || next.claim.atMs < exitedMs) return
  const waitedMs = trouble.store.outsideMs(exitedMs, givenMs(next))
  const boundMs = leaseMs(start) + capabilities.recoveryMaxMs
  if (waitedMs <= boundMs) return
  report.violation(
    story.id,
    `job ${story.id} was held by ${start.claim.worker}, whose process had exited, for ${Math.round(waitedMs)} ms; within ${boundMs} ms it has to be given to another`,
  )
}
