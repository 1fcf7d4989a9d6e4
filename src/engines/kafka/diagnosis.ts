/** `millrace doctor` for Kafka: what can go wrong with brokers, topics and the group, looked at, each with what to do about it. */
import type { DiagnoseOptions, Finding } from '../../engine/diagnosis.ts'
import { looked } from '../../engine/findings.ts'
import { lookAtBrokers, lookAtCommits, lookAtLatency, lookAtTimeouts, lookAtVersion } from './diagnosis/brokers.ts'
import { judgeGroup, judgeWorkers } from './diagnosis/group.ts'
import { judgeRetries, judgeTransactions } from './diagnosis/held.ts'
import { judgeClock, judgeLag, judgeLost, judgeOverdue } from './diagnosis/lag.ts'
import { judgeLetters } from './diagnosis/letters.ts'
import { type Survey, type SurveyParts, survey } from './diagnosis/survey.ts'
import { judgeReplication, judgeRetention, judgeTopics } from './diagnosis/topics.ts'

export type Examination = DiagnoseOptions & SurveyParts

/** Only looks. */
export async function diagnose(examination: Examination): Promise<readonly Finding[]> {
  const { admin, client, options, handlerMs = null } = examination
  const looks: readonly (readonly [subject: string, look: () => Promise<Finding | readonly Finding[]>])[] = [
    ['broker version', () => lookAtVersion(admin)],
    ['brokers', () => lookAtBrokers(admin, options)],
    ['latency', () => lookAtLatency(admin)],
    ['timeouts', () => lookAtTimeouts(admin, client, options, handlerMs)],
    ['commits', () => lookAtCommits(admin, client)],
    ['topics', async () => judge(await survey(examination), examination)],
  ]
  const findings: Finding[] = []
  for (const [subject, look] of looks) findings.push(...(await looked(subject, look)))
  return findings
}

function judge(found: Survey, { options, lag = {}, nowMs }: Examination): readonly Finding[] {
  return [
    ...judgeTopics(found),
    ...judgeReplication([...found.jobs, ...found.letters.values()]),
    ...judgeRetention(found),
    ...judgeLetters(found, options.partitions > 0),
    ...judgeGroup(found),
    ...judgeWorkers(found),
    ...judgeLag(found, options.prefix, lag),
    ...judgeOverdue(found),
    ...judgeRetries(found),
    ...judgeTransactions(found, options),
    ...judgeLost(found),
    judgeClock(found, nowMs),
  ]
}
