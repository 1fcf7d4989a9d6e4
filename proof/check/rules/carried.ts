import { digestOf } from '../../history/recorder.ts'
import type { Report, Rule } from '../check.ts'
import type { Ask, Evidence, JobStory } from '../evidence.ts'

/** A job arrives as it was sent. */
export const carried: Rule = {
  name: 'carried',
  promise:
    'A job is handed out with the payload, the tenant, the type, the key and the priority that it was enqueued with',
  judge(evidence, report) {
    for (const story of evidence.jobs.values()) {
      // Other programs write rows and records in their own form.
      if (story.ask !== null && story.ask.from !== 'foreign') judgeJob(evidence, story, story.ask, report)
    }
  },
}

function judgeJob(
  { capabilities, final }: Evidence,
  { id, acts, starts }: JobStory,
  { job }: Ask,
  report: Report,
): void {
  const edits = acts.flatMap(({ edit, done }) => (edit !== null && done !== 'no' ? [edit] : []))
  const digests = new Set([job.digest, ...edits])
  const differs = (what: string): void => report.violation(id, `job ${id} was handed out with another ${what}`)
  const isRanked = capabilities.order === 'priority' || capabilities.order === 'ageing-priority'
  for (const { lease } of starts) {
    if (!digests.has(lease.digest)) differs('payload')
    if (lease.type !== job.type) differs('type')
    if (lease.tenant !== job.tenant) differs('tenant')
    if (lease.key !== job.key) differs('key')
    if (lease.latestKey !== job.latest?.key) differs('latest key')
    if (isRanked && lease.priority !== job.priority) differs('priority')
  }
  const view = final.jobs.get(id)
  if (view === undefined) return
  if (!digests.has(digestOf(view.payload))) report.violation(id, `job ${id} is stored with another payload`)
  if (view.attempts !== job.attempts)
    report.violation(id, `job ${id} is stored with ${view.attempts} attempts, not ${job.attempts}`)
}
