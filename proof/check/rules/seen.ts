import type { Rule } from '../check.ts'

/** What clients and handlers judged themselves, because only they could see it. */
export const seen: Rule = {
  name: 'seen',
  promise: 'What is refused, returned and told to clients and handlers is what the contract says',
  judge({ history }, report) {
    for (const entry of history) {
      if (entry.what !== 'seen' || entry.isPromised) continue
      report.violation(entry.job, `${entry.by}: ${entry.sentence} (${entry.rule})`)
    }
  },
}
