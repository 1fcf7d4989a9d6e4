import type { Report, Rule } from '../check.ts'
import type { Evidence, ProcessStory } from '../evidence.ts'
import { givenMs, mayBeActed } from '../life.ts'

/** A drain of 30 s, and what aborting, releasing and closing take. */
const STOP_DEFAULT_MS = 45_000

/** A process that is asked to stop ends in time, with exit code 0, and leaves nothing leased. */
export const stopping: Rule = {
  name: 'I8',
  promise: 'Stop is bounded: the process exits with 0 in time and leaves nothing leased',
  judge(evidence, report) {
    for (const story of evidence.processes.values()) {
      const { name, stoppingMs, exitedMs } = story
      if (stoppingMs === null) continue
      if (evidence.trouble.ofProcess(name).meets(stoppingMs, exitedMs ?? evidence.endMs)) {
        report.unjudged('processes that were struck, or whose store was, while they stopped')
      } else judgeStop(story, stoppingMs, report)
    }
    judgeLeft(evidence, report)
  },
}

function judgeStop({ name, boundMs, exitedMs, how }: ProcessStory, stoppingMs: number, report: Report): void {
  const allowedMs = boundMs ?? STOP_DEFAULT_MS
  if (exitedMs === null) {
    report.violation(null, `${name} was asked to stop and never exited`)
    return
  }
  if (how !== '0') report.violation(null, `${name} was asked to stop and exited with ${how ?? 'an unknown code'}`)
  const tookMs = Math.round(exitedMs - stoppingMs)
  if (tookMs > allowedMs) report.violation(null, `${name} took ${tookMs} ms to stop, and has ${allowedMs} ms`)
}

/** Every lease of a process that stopped was settled or lost. */
function judgeLeft({ jobs, processes, trouble }: Evidence, report: Report): void {
  for (const story of jobs.values()) {
    const { id, starts } = story
    starts.forEach((start, index) => {
      const process = processes.get(start.by)
      const exitedMs = process?.exitedMs ?? null
      if (process === undefined || exitedMs === null || process.how !== '0') return
      const next = starts[index + 1]
      const isOver =
        start.settles.length > 0 || start.lostMs !== null || (next !== undefined && givenMs(next) < exitedMs)
      if (isOver) return
      if (mayBeActed(story, 'cancel')) {
        // The thread that renews may have told the worker, and its calls are not recorded.
        report.unjudged('leases of jobs that were cancelled')
        return
      }
      if (trouble.ofProcess(start.by).meets(process.stoppingMs ?? givenMs(start), exitedMs)) {
        report.unjudged('leases of processes that were struck, or whose store was, while they stopped')
        return
      }
      report.violation(id, `${start.by} exited with 0 and left job ${id} leased`)
    })
  }
}
