/** What the doctor is told about Kafka's brokers, topics and the group. It only reads. */
import { failure, runChecks, warning } from '../../doctor/findings.ts'
import { judgeOverdue } from '../../doctor/jobs.ts'
import {
  judgeBrokers,
  judgeBrokerVersion,
  judgeDrain,
  judgeGroup,
  judgeLag,
  judgeLost,
  judgeOffsets,
  judgeReaders,
  judgeRetries,
  judgeSession,
} from '../../doctor/kafka.ts'
import {
  judgeDeadLetters,
  judgeReplication,
  judgeRetention,
  judgeTopics,
  judgeTransactions,
} from '../../doctor/kafka-topics.ts'
import { judgeFuture, judgeLatency, measureLatency } from '../../doctor/server.ts'
import type { DiagnoseOptions, Finding } from '../../engine/engine.ts'
import { isMillraceError, messageOf } from '../../errors.ts'
import { systemClock } from '../../time/clock.ts'
import { METADATA_BYTES_MAX } from './commit-metadata.ts'
import { METADATA_ADVICE, metadataBytesMaxOf, metadataTooSmall } from './commits.ts'
import { configsOf, numberOf, type Settings } from './configs.ts'
import type { Admin, Client } from './driver.ts'
import { within } from './faults.ts'
import type { KafkaOptions } from './options.ts'
import { readTopics, type TopicFacts, type TopicSources } from './topic-facts.ts'
import { LETTER_AGE_MAX_MS } from './topics.ts'
import { RETRIES_MAX } from './watermark.ts'

export type Examination = DiagnoseOptions & TopicSources

export async function diagnose(examination: Examination): Promise<readonly Finding[]> {
  const { admin, client, options, handlerMs = null } = examination
  const ping = (): Promise<unknown> => admin.metadata({ topics: [], forceUpdate: true })
  return runChecks([
    ['broker version', async () => judgeBrokerVersion(await admin.listApis())],
    ['brokers', () => checkBrokers(admin, options)],
    ['latency', async () => judgeLatency(await measureLatency(systemClock, ping))],
    ['timeouts', () => checkTimeouts(admin, client, options, handlerMs)],
    ['commits', async () => judgeCommitRoom(await metadataBytesMaxOf(admin, client, systemClock))],
    ['topics', async () => judgeAll(await readTopics(examination), examination)],
  ])
}

async function checkBrokers(admin: Admin, { answerMs }: KafkaOptions): Promise<readonly Finding[]> {
  const { brokers } = await admin.metadata({ topics: [], forceUpdate: true })
  const reached: Parameters<typeof judgeBrokers>[0][number][] = []
  for (const [id, { host, port }] of brokers) {
    const isReached = await within(systemClock, answerMs, admin.connections.get({ host, port })).then(
      () => true,
      () => false,
    )
    reached.push({ id, address: `${host}:${port}`, isReached })
  }
  return judgeBrokers(reached)
}

const SEE_LIMITS = 'Run it as a user with DescribeConfigs on the cluster to have them checked too.'
const GROUP_SETTINGS = ['group.min.session.timeout.ms', 'group.max.session.timeout.ms', 'offsets.retention.minutes']

async function checkTimeouts(
  admin: Admin,
  client: Client,
  options: KafkaOptions,
  handlerMs: number | null,
): Promise<readonly Finding[]> {
  const { brokers } = await admin.metadata({ topics: [] })
  const [first] = brokers.keys()
  if (first === undefined) return [failure('timeouts', 'no broker is known', 'Start one, then run it again.')]
  const unseen: Finding[] = []
  const described = await configsOf(admin, client.ConfigResourceTypes.BROKER, [String(first)], GROUP_SETTINGS).catch(
    (error: unknown) => {
      // A worker needs no such right, and where others run the brokers nobody may get it.
      if (!isMillraceError(error, 'ERR_STORAGE_READONLY')) throw error
      unseen.push(warning('timeouts', `the limits of the brokers are unknown: ${messageOf(error)}`, SEE_LIMITS))
      return new Map<string, Settings>()
    },
  )
  const [settings = new Map()] = described.values()
  return [
    ...unseen,
    judgeSession({ ...options, ...sessionLimits(settings) }),
    judgeDrain(options.drainMs, handlerMs),
    ...judgeOffsets(numberOf(settings, 'offsets.retention.minutes')),
  ]
}

function sessionLimits(settings: Settings): { readonly minMs: number; readonly maxMs: number } {
  return {
    minMs: numberOf(settings, 'group.min.session.timeout.ms') ?? 0,
    maxMs: numberOf(settings, 'group.max.session.timeout.ms') ?? Number.POSITIVE_INFINITY,
  }
}

/** With the words of the error that a commit throws. */
export function judgeCommitRoom(bytes: number | null): readonly Finding[] {
  if (bytes === null || bytes >= METADATA_BYTES_MAX) return []
  return [failure('commits', metadataTooSmall(bytes), METADATA_ADVICE)]
}

function judgeAll(facts: TopicFacts, { options, lag = {}, nowMs }: Examination): readonly Finding[] {
  const { group, jobs, letters, missing, states } = facts
  return [
    ...judgeTopics(jobs, missing, group.name),
    ...judgeReplication([...jobs, ...letters.flatMap(({ topic }) => topic ?? [])]),
    ...judgeRetention(jobs),
    ...judgeDeadLetters({ letters, states, creates: options.partitions > 0, promisedMs: LETTER_AGE_MAX_MS }),
    judgeGroup(facts),
    ...judgeReaders(facts),
    ...judgeLag(facts, options.prefix, lag),
    ...judgeOverdue(overdueJobs(facts)),
    ...judgeRetries(facts, RETRIES_MAX),
    ...judgeTransactions(jobs, options.isolation === 'read_uncommitted'),
    ...judgeLost(facts),
    judgeDates(facts, nowMs),
  ]
}

export function overdueJobs({ jobs }: Pick<TopicFacts, 'jobs'>): Parameters<typeof judgeOverdue>[0] {
  return jobs
    .map(({ name, partitions }) => ({
      ...{ type: name, counted: 'overdue' as const, oldestMs: null, running: null },
      jobs: partitions.reduce((sum, { overdue }) => sum + overdue, 0),
    }))
    .filter((topic) => topic.jobs > 0)
}

/** A broker tells no time; the records of a producer whose clock is ahead do. */
export function judgeDates({ jobs }: Pick<TopicFacts, 'jobs'>, nowMs: number): Finding {
  const dated = jobs.flatMap(({ partitions }) =>
    partitions.map(({ name, newestMs }) => ({ name: `a record of ${name}`, aheadMs: (newestMs ?? nowMs) - nowMs })),
  )
  return judgeFuture(dated, { consequence: 'retention goes by these dates', severity: 'warning' })
}
