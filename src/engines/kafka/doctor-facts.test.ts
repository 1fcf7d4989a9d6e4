/** What the doctor makes of what a broker tells. On a real one: test/kafka/diagnosis.test.ts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { judgeOverdue } from '../../doctor/jobs.ts'
import {
  judgeBrokerVersion,
  judgeDrain,
  judgeGroup,
  judgeLag,
  judgeLost,
  judgeOffsets,
  judgeReaders,
  judgeRetries,
  judgeSession,
  type KafkaGroup,
  type KafkaTopic,
  lagOf,
} from '../../doctor/kafka.ts'
import {
  judgeDeadLetters,
  judgeReplication,
  judgeRetention,
  judgeTopics,
  judgeTransactions,
} from '../../doctor/kafka-topics.ts'
import type { Finding } from '../../engine/engine.ts'
import { encodeProgress } from './commit-metadata.ts'
import { judgeCommitRoom, judgeDates, overdueJobs } from './doctor-facts.ts'
import { parseUrl } from './options.ts'
import {
  deadLetterTopic,
  type PartitionOffsets,
  partitionFacts,
  type TopicFacts,
  topicSettings,
} from './topic-facts.ts'
import { RETRIES_MAX } from './watermark.ts'

const DAY_MS = 86_400_000
const options = parseUrl('kafka://127.0.0.1:9092')

const partition = (of: Partial<PartitionOffsets> = {}) =>
  partitionFacts({
    ...{ topic: 'jobs', partition: 0, leader: 1, replicas: 3, inSync: 3, begin: 0n, end: 0n, young: 0n },
    ...{ stable: of.end ?? 0n, recent: of.end ?? 0n },
    ...{ newestMs: null, committed: null },
    ...of,
  })
const topic = (
  partitions: readonly Partial<PartitionOffsets>[] = [{}],
  settings: Readonly<Record<string, string>> = {},
  name = 'jobs',
): KafkaTopic => ({
  name,
  partitions: partitions.map((of, index) => partition({ topic: name, partition: index, ...of })),
  settings: topicSettings(
    new Map(Object.entries({ 'min.insync.replicas': '2', 'max.message.bytes': '1000', ...settings })),
  ),
})
const group = (of: Partial<KafkaGroup> = {}): KafkaGroup => ({
  ...{ name: 'payouts', state: 'Stable', protocol: 'cooperative-sticky', hasCommits: true },
  members: [{ host: '10.0.0.7', topics: ['jobs'], partitions: 1 }],
  ...of,
})
const factsOf = (of: Partial<TopicFacts> = {}): TopicFacts => ({
  ...{ group: group(), jobs: [topic()], letters: [], states: null, missing: [] },
  ...of,
})
const told = (findings: Finding | readonly Finding[]): string =>
  [findings]
    .flat()
    .map(({ severity, detail }) => `${severity}: ${detail}`)
    .join('\n')
const committed = (offset: bigint, metadata: string | null = null) => ({ offset, metadata })

describe('a broker is judged', () => {
  test('by the protocol that it speaks, because none says which Kafka it is', () => {
    const judged = (minVersion: number, maxVersion: number): string =>
      told(judgeBrokerVersion([{ name: 'Fetch', minVersion, maxVersion }]))
    assert.equal(judged(4, 18), 'ok: speaks the protocol of Kafka 4.1 or newer')
    assert.match(judged(4, 17), /^ok/)
    assert.match(judged(0, 17), /^warning: .*3\.9/)
    assert.match(judged(0, 12), /^error: too old/)
    assert.match(told(judgeBrokerVersion([])), /^error/)
  })

  test('by what it lets a commit say', () => {
    assert.deepEqual([judgeCommitRoom(4_096), judgeCommitRoom(null)], [[], []])
    assert.match(told(judgeCommitRoom(256)), /^error: .*256 bytes \(offset\.metadata\.max\.bytes\).*needs 4096/)
  })

  test('by the sessions that it allows, and the session by its beats', () => {
    const judged = (sessionMs: number, heartbeatMs: number): string =>
      told(judgeSession({ sessionMs, heartbeatMs, minMs: 6_000, maxMs: 60_000 }))
    assert.match(judged(6_000, 2_000), /^ok/)
    assert.match(judged(5_999, 1_000), /^error: .*6000 to 60000 ms/)
    assert.match(judged(60_001, 1_000), /^error/)
    assert.match(judged(6_000, 2_001), /^warning: .*two lost heartbeats/)
  })

  test('by how long it remembers a group without members', () => {
    assert.deepEqual(judgeOffsets(1440), [])
    assert.match(told(judgeOffsets(60)), /^warning: .*60 min/)
  })

  test('by handlers that take longer than a move waits for them', () => {
    assert.match(told(judgeDrain(options.drainMs, null)), /^ok: .*20 s/)
    assert.match(told(judgeDrain(options.drainMs, 20_000)), /^ok/)
    const slow = judgeDrain(options.drainMs, 20_001)
    assert.match(told(slow), /^warning/)
    assert.match(slow.advice ?? '', /\?drain=20001/)
  })
})

describe('topics are judged', () => {
  test('by their copies', () => {
    const judged = (of: Partial<PartitionOffsets>, min = '2'): string =>
      told(judgeReplication([topic([of], { 'min.insync.replicas': min })]))
    assert.match(judged({}), /^ok/)
    assert.match(judged({ leader: -1 }), /^error: 1 partition of 'jobs' without a leader/)
    assert.match(judged({ inSync: 1 }), /^error: 'jobs' has 1 of 3 replicas in sync and needs 2/)
    assert.match(judged({ inSync: 2 }), /^warning: 'jobs' has 2 of 3 replicas in sync$/)
    assert.match(judged({}, '1'), /^warning: .*min\.insync\.replicas=1/)
    assert.match(judged({}, '3'), /^warning: .*needs all of them/)
    assert.match(judged({ replicas: 1, inSync: 1 }, '1'), /^warning: 'jobs': one copy/)
    const unclean = topic([{}], { 'unclean.leader.election.enable': 'true' })
    assert.match(told(judgeReplication([unclean])), /^warning: .*may vanish/)
  })

  test('by whether they are there, and for how long records stay', () => {
    assert.match(told(judgeTopics([topic()], [], 'payouts')), /^ok: 1 topic of jobs with 1 partition/)
    assert.match(told(judgeTopics([topic()], ['gone'], 'payouts')), /^error: 'gone' does not exist/)
    const judged = (settings: Readonly<Record<string, string>>): string => told(judgeRetention([topic([{}], settings)]))
    assert.match(judged({ 'retention.ms': '604800000' }), /^ok/)
    assert.match(judged({ 'retention.ms': '-1' }), /^ok/)
    assert.match(judged({ 'retention.ms': String(DAY_MS - 1) }), /^warning: .*23 h/)
    assert.match(judged({ 'retention.ms': '3600000' }), /^error/)
    assert.match(judged({ 'cleanup.policy': 'compact' }), /^warning: .*compacted/)
  })

  // D54 D55
  test('by whether dead letters stay until somebody has seen to them', () => {
    const kept = { letters: [], states: null, creates: true, promisedMs: 30 * DAY_MS }
    const judged = (settings: Readonly<Record<string, string>>): string => {
      const letters = topic(
        [{ end: 3n }],
        { 'cleanup.policy': 'delete', 'retention.ms': '-1', 'max.message.bytes': '100000', ...settings },
        'jobs.dlq',
      )
      return told(judgeDeadLetters({ ...kept, letters: [deadLetterTopic(topic(), letters)] }))
    }
    assert.equal(judged({}), 'ok: 3 records in 1 topic, and no broker deletes them')
    assert.match(judged({ 'retention.ms': String(30 * DAY_MS - 1) }), /^error: .*after 29 d.*30 d are promised/)
    assert.match(judged({ 'retention.ms': String(30 * DAY_MS) }), /^warning: .*without archiving/)
    assert.match(judged({ 'retention.bytes': '1000' }), /^warning: .*1000 bytes/)
    assert.match(judged({ 'cleanup.policy': 'compact' }), /^warning: .*cannot be cut off/)
    assert.match(judged({ 'max.message.bytes': '1000' }), /^warning: .*1000 bytes and 'jobs' 1000.*in parts/)
    assert.match(told(judgeDeadLetters(kept)), /^ok/)
    const states = (policy: string): string =>
      told(judgeDeadLetters({ ...kept, states: topic([{}], { 'cleanup.policy': policy }, 'desk-states') }))
    assert.match(states('compact'), /^ok/)
    assert.match(states('compact,delete'), /^error: 'desk-states' .*forgotten/)
    assert.match(
      told(judgeDeadLetters({ ...kept, letters: [deadLetterTopic(topic(), null)], creates: false })),
      /^error: 'jobs\.dlq' does not exist/,
    )
  })
})

describe('the group is judged', () => {
  test('by who is in it', () => {
    const judged = (of: Partial<KafkaGroup>): string => told(judgeGroup(factsOf({ group: group(of) })))
    const idle = { host: '10.0.0.8', topics: ['jobs'], partitions: 0 }
    assert.equal(judged({}), "ok: 'payouts' has 1 member on 10.0.0.7 and 1 partition")
    assert.match(judged({ members: [...group().members, idle] }), /^warning: .*1 of them have no partition/)
    assert.match(judged({ state: 'PreparingRebalance' }), /^warning: .*rebalancing now/)
    assert.match(judged({ protocol: 'range' }), /^warning: .*another program/)
    assert.match(judged({ members: [], state: 'Empty' }), /^ok: .*no member now/)
    assert.match(judged({ members: [], state: 'Dead', hasCommits: false }), /^ok: .*never/)
    assert.match(judged({ members: [], state: 'Dead' }), /^warning: .*newer protocol/)
  })

  test('by topics with waiting records that nobody reads', () => {
    const waiting = topic([{ end: 5n, committed: committed(3n) }], {}, 'mails')
    assert.match(told(judgeReaders(factsOf())), /^ok/)
    assert.match(told(judgeReaders(factsOf({ jobs: [waiting] }))), /^warning: 'mails' has 2 waiting records/)
  })

  // D12 D14 D20
  test('by how far it is behind: above a limit, not at it', () => {
    const behind = (lag: bigint): TopicFacts => factsOf({ jobs: [topic([{ end: lag }, {}])] })
    const judged = (lag: bigint): string => told(judgeLag(behind(lag), '', { jobs: { warning: 100, critical: 500 } }))
    assert.match(judged(100n), /^ok: 100 records behind over 1 topic/)
    assert.match(judged(101n), /^warning: .*101 records behind on 'jobs', more than 100/)
    assert.match(judged(500n), /^warning/)
    assert.match(judged(501n), /^error: .*more than 500/)
    assert.match(told(judgeLag(behind(1_001n), '', {})), /^warning/)
    // Limits go by the type, which has no prefix.
    const prefixed = factsOf({ jobs: [topic([{ end: 11n }], {}, 'app.jobs')] })
    assert.match(told(judgeLag(prefixed, 'app.', { jobs: { warning: 10, critical: 50 } })), /^warning/)
    // X163: never committed means everything that is there.
    const places = [
      { begin: 2n, end: 9n },
      { end: 7n, committed: committed(2n) },
      { begin: 4n, end: 5n, committed: committed(1n) },
    ]
    assert.equal(lagOf(topic(places)), 7 + 5 + 1)
  })

  test('by records that are old and not settled, and those that were deleted unsettled', () => {
    const metadata = encodeProgress(3, { finished: [[4, 5]], retryStates: [] })
    const old = topic([{ begin: 0n, end: 9n, young: 6n, committed: committed(3n, metadata) }])
    assert.match(told(judgeOverdue(overdueJobs(factsOf({ jobs: [old] })))), /^warning: 2 jobs of type 'jobs' overdue/)
    const settled = topic([{ end: 9n, young: 6n, committed: committed(6n) }])
    assert.match(told(judgeOverdue(overdueJobs(factsOf({ jobs: [settled] })))), /^ok/)
    assert.match(told(judgeLost(factsOf({ jobs: [old] }))), /^ok/)
    const cut = topic([{ begin: 8n, end: 9n, committed: committed(3n) }])
    assert.match(told(judgeLost(factsOf({ jobs: [cut] }))), /^error: 5 records of 'jobs' deleted/)
  })

  test('by records in retry that keep the others of their partition back', () => {
    const retries = (count: number): TopicFacts => {
      const retryStates = Array.from(
        { length: count },
        (_, n) => [3 + n, { starts: 1, dueMs: 7, firstFailureMs: 6 }] as const,
      )
      const metadata = encodeProgress(3, { finished: [], retryStates })
      return factsOf({ jobs: [topic([{ end: 99n, committed: committed(3n, metadata) }, { end: 9n }])] })
    }
    assert.match(told(judgeRetries(retries(RETRIES_MAX - 1), RETRIES_MAX)), /^ok/)
    assert.match(
      told(judgeRetries(retries(RETRIES_MAX), RETRIES_MAX)),
      /^warning: 50 records of jobs\/0 wait for a retry/,
    )
  })

  test('by transactions that are open for long', () => {
    const judged = (
      stable: bigint,
      recent: bigint,
      isolation: 'read_committed' | 'read_uncommitted' = 'read_committed',
    ) => told(judgeTransactions([topic([{ end: 9n, stable, recent }])], isolation === 'read_uncommitted'))
    assert.match(judged(9n, 9n), /^ok/)
    assert.match(judged(5n, 5n), /^ok/)
    assert.match(judged(5n, 6n), /^warning: 4 records of jobs\/0 from offset 5 on wait for the end of a transaction/)
    assert.match(judged(5n, 6n, 'read_uncommitted'), /^ok: .*read_uncommitted/)
  })

  test('by records from the future', () => {
    const dated = (newestMs: number): TopicFacts => factsOf({ jobs: [topic([{ newestMs }])] })
    assert.match(told(judgeDates(dated(15_000), 10_000)), /^ok/)
    assert.match(told(judgeDates(dated(200_000), 10_000)), /^warning: .*by 3 min/)
    assert.match(told(judgeDates(factsOf(), 10_000)), /^ok/)
  })
})
