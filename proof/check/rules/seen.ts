import type { Rule } from '../check.ts'

/** What clients and handlers found out themselves while they ran. */
export const seen: Rule = {
  name: 'seen',
  promise: 'What clients and handlers are told, and what they are refused, is what the contract says',
  judge(evidence, report) {
    for (const { rule, job, isPromised, sentence, by } of evidence.seen) {
      if (!isPromised) report.violation(job, `${by} saw (${rule}): ${sentence}`)
    }
  },
}
