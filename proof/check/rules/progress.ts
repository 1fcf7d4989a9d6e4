import type { Rule } from '../check.ts'
import { givenMs } from '../life.ts'

export const progress: Rule = {
  name: 'progress',
  promise: 'A report of progress is answered with false once the lease is gone',
  judge({ jobs, trouble }, report) {
    for (const { id, starts } of jobs.values()) {
      starts.forEach((start, index) => {
        for (const { askedMs, isHeld } of start.reports) {
          if (isHeld !== true) continue
          if (trouble.undo(start.lease.type).meets(givenMs(start), askedMs)) {
            report.unjudged('progress of a time that a fault may have undone')
            continue
          }
          if (start.lostMs !== null && start.lostMs < askedMs) {
            report.violation(id, `progress of job ${id} was taken after its lease had been lost`)
          }
          const settled = start.settles.some(
            ({ done, answeredMs }) => done === 'yes' && (answeredMs ?? askedMs) < askedMs,
          )
          if (settled) report.violation(id, `progress of job ${id} was taken after its lease had been settled`)
          const next = starts.slice(index + 1).find(({ claim }) => claim.atMs > givenMs(start))
          if (next !== undefined && givenMs(next) < askedMs) {
            report.violation(id, `progress of job ${id} was taken after it had been given to ${next.claim.worker}`)
          }
        }
      })
    }
  },
}
