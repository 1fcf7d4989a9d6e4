import type { Rule } from '../check.ts'

/** What was refused has changed nothing. */
export const refusals: Rule = {
  name: 'I10',
  promise: 'What is refused changes nothing',
  judge({ jobs, final }, report) {
    for (const { id, asks, starts } of jobs.values()) {
      if (asks.length === 0 || !asks.every(({ status }) => status === 'refused' || status === 'stale')) continue
      const [{ status } = { status: 'refused' }] = asks
      const why = status === 'stale' ? 'though it was answered as stale' : 'though its enqueue was refused'
      if (starts.length > 0) report.violation(id, `job ${id} was started ${why}`)
      else if (final.jobs.has(id)) report.violation(id, `job ${id} is in the store ${why}`)
    }
  },
}
