import { ERROR_MESSAGE_LENGTH_MAX, ERROR_STACK_LENGTH_MAX } from '../../../src/job/error-record.ts'
import type { Rule } from '../check.ts'

/** What an audit entry must not keep of a job. */
const PRIVATE = ['payload', 'result', 'progress'] as const

/** Payloads stay where they belong. A history has no logs, metrics and alerts, so those are not judged. */
export const secrecy: Rule = {
  name: 'I12',
  promise: 'The audit has no payloads, and stored errors are cut to their length and to what every store can keep',
  judge({ final, jobs }, report) {
    report.unjudged('logs, metrics and alerts, which a history does not have')
    for (const { jobId, action, before, after } of final.audit) {
      const kept = PRIVATE.find((field) => field in before || field in (after ?? {}))
      if (kept !== undefined) report.violation(jobId, `the audit entry '${action}' of job ${jobId} has its ${kept}`)
    }
    for (const { id, error } of final.jobs.values()) {
      if (error === null) continue
      const isLong =
        error.message.length > ERROR_MESSAGE_LENGTH_MAX || (error.stack?.length ?? 0) > ERROR_STACK_LENGTH_MAX
      if (isLong) report.violation(id, `the stored error of job ${id} is longer than it may be`)
    }
    // No handler of the workload returns such a text, so it was an error's.
    for (const { id, starts } of jobs.values()) {
      const isRefused = starts.some(({ settles }) => settles.some(({ reason }) => reason === 'unstorable'))
      if (isRefused) report.violation(id, `the store was given an error of job ${id} whose text it cannot keep`)
    }
  },
}
