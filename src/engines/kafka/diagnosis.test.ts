/** What the doctor makes of what a broker tells. On a real one: test/kafka/diagnosis.test.ts. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Finding } from '../../engine/diagnosis.ts'
import { encodeProgress } from './commit-metadata.ts'
import { judgeCommitRoom, judgeDrain, judgeOffsets, judgeSession, judgeVersion } from './diagnosis/brokers.ts'
import { judgeGroup, judgeWorkers } from './diagnosis/group.ts'
import { judgeRetries, judgeTransactions } from './diagnosis/held.ts'
import { judgeClock, judgeLag, judgeLost, judgeOverdue, lagOf } from './diagnosis/lag.ts'
import { judgeLetters } from './diagnosis/letters.ts'
import type { GroupView, PartitionView, Survey, TopicView } from './diagnosis/survey.ts'
import { judgeReplication, judgeRetention, judgeTopics } from './diagnosis/topics.ts'
import { parseUrl } from './options.ts'
import { RETRIES_MAX } from './watermark.ts'

const DAY_MS = 86_400_000
const options = parseUrl('kafka://127.0.0.1:9092')

const partition = (of: Partial<PartitionView> = {}): PartitionView => ({
  ...{ topic: 'jobs', partition: 0, leader: 1, replicas: 3, inSync: 3, begin: 0n, end: 0n, young: 0n },
  ...{ stable: of.end ?? 0n, recent: of.end ?? 0n },
  ...{ newestMs: null, committed: null },
  ...of,
})
const topic = (
  partitions: readonly Partial<PartitionView>[] = [{}],
  settings: Readonly<Record<string, string>> = {},
  name = 'jobs',
): TopicView => ({
  name,
  partitions: partitions.map((of, index) => partition({ topic: name, partition: index, ...of })),
  settings: new Map(Object.entries({ 'min.insync.replicas': '2', 'max.message.bytes': '1000', ...settings })),
})
const group = (of: Partial<GroupView> = {}): GroupView => ({
  ...{ name: 'payouts', state: 'Stable', protocol: 'cooperative-sticky', hasCommits: true },
  members: [{ host: '10.0.0.7', topics: ['jobs'], partitions: 1 }],
  ...of,
})
const surveyOf = (of: Partial<Survey> = {}): Survey => ({
  ...{ group: group(), jobs: [topic()], letters: new Map(), states: null, missing: [] },
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
      told(judgeVersion([{ name: 'Fetch', minVersion, maxVersion }]))
    assert.equal(judged(4, 18), 'ok: speaks the protocol of Kafka 4.1 or newer')
    assert.match(judged(4, 17), /^ok/)
    assert.match(judged(0, 17), /^warning: .*3\.9/)
    assert.match(judged(0, 12), /^error: too old/)
    assert.match(told(judgeVersion([])), /^error/)
  })

  test('by what it lets a commit say', () => {
    assert.deepEqual([judgeCommitRoom(4_096), judgeCommitRoom(null)], [[], []])
    assert.match(told(judgeCommitRoom(256)), /^error: .*256 bytes \(offset\.metadata\.max\.bytes\).*needs 4096/)
  })

  test('by the sessions that it allows, and the session by its beats', () => {
    const allowed = new Map([
      ['group.min.session.timeout.ms', '6000'],
      ['group.max.session.timeout.ms', '60000'],
    ])
    const judged = (sessionMs: number, heartbeatMs: number): string =>
      told(judgeSession({ ...options, sessionMs, heartbeatMs }, allowed))
    assert.match(judged(6_000, 2_000), /^ok/)
    assert.match(judged(5_999, 1_000), /^error: .*6000 to 60000 ms/)
    assert.match(judged(60_001, 1_000), /^error/)
    assert.match(judged(6_000, 2_001), /^warning: .*two lost beats/)
  })

  test('by how long it remembers a group without members', () => {
    assert.deepEqual(judgeOffsets(new Map([['offsets.retention.minutes', '1440']])), [])
    assert.match(told(judgeOffsets(new Map([['offsets.retention.minutes', '60']]))), /^warning: .*60 min/)
  })

  test('by handlers that take longer than a move waits for them', () => {
    assert.match(told(judgeDrain(options, null)), /^ok: .*20 s/)
    assert.match(told(judgeDrain(options, 20_000)), /^ok/)
    const slow = judgeDrain(options, 20_001)
    assert.match(told(slow), /^warning/)
    assert.match(slow.advice ?? '', /\?drain=20001/)
  })
})

describe('topics are judged', () => {
  test('by their copies', () => {
    const judged = (of: Partial<PartitionView>, min = '2'): string =>
      told(judgeReplication([topic([of], { 'min.insync.replicas': min })]))
    assert.match(judged({}), /^ok/)
    assert.match(judged({ leader: -1 }), /^error: 1 partition of 'jobs' without a leader/)
    assert.match(judged({ inSync: 1 }), /^error: 'jobs' has 1 of 3 copies in sync and needs 2/)
    assert.match(judged({ inSync: 2 }), /^warning: 'jobs' has 2 of 3 copies in sync$/)
    assert.match(judged({}, '1'), /^warning: .*min\.insync\.replicas=1/)
    assert.match(judged({}, '3'), /^warning: .*needs all of them/)
    assert.match(judged({ replicas: 1, inSync: 1 }, '1'), /^warning: 'jobs': one copy/)
    const unclean = topic([{}], { 'unclean.leader.election.enable': 'true' })
    assert.match(told(judgeReplication([unclean])), /^warning: .*may vanish/)
  })

  test('by whether they are there, and for how long records stay', () => {
    assert.match(told(judgeTopics(surveyOf())), /^ok: 1 topic of jobs with 1 partition/)
    assert.match(told(judgeTopics(surveyOf({ missing: ['gone'] }))), /^error: 'gone' does not exist/)
    const judged = (settings: Readonly<Record<string, string>>): string =>
      told(judgeRetention(surveyOf({ jobs: [topic([{}], settings)] })))
    assert.match(judged({ 'retention.ms': '604800000' }), /^ok/)
    assert.match(judged({ 'retention.ms': '-1' }), /^ok/)
    assert.match(judged({ 'retention.ms': String(DAY_MS - 1) }), /^warning: .*23 h/)
    assert.match(judged({ 'retention.ms': '3600000' }), /^error/)
    assert.match(judged({ 'cleanup.policy': 'compact' }), /^warning: .*compacted/)
  })

  // D54 D55
  test('by whether dead letters stay until somebody has seen to them', () => {
    const judged = (settings: Readonly<Record<string, string>>): string => {
      const letters = topic(
        [{ end: 3n }],
        { 'cleanup.policy': 'delete', 'retention.ms': '-1', 'max.message.bytes': '100000', ...settings },
        'jobs.dlq',
      )
      return told(judgeLetters(surveyOf({ letters: new Map([['jobs', letters]]) }), true))
    }
    assert.equal(judged({}), 'ok: 3 records in 1 topic, and no broker deletes them')
    assert.match(judged({ 'retention.ms': String(30 * DAY_MS - 1) }), /^error: .*after 29 d.*30 d are promised/)
    assert.match(judged({ 'retention.ms': String(30 * DAY_MS) }), /^warning: .*without archiving/)
    assert.match(judged({ 'retention.bytes': '1000' }), /^warning: .*1000 bytes/)
    assert.match(judged({ 'cleanup.policy': 'compact' }), /^warning: .*cannot be cut off/)
    assert.match(judged({ 'max.message.bytes': '1000' }), /^warning: .*1000 bytes and 'jobs' 1000.*in parts/)
    assert.match(told(judgeLetters(surveyOf(), true)), /^ok/)
    const states = (policy: string): Survey =>
      surveyOf({ states: topic([{}], { 'cleanup.policy': policy }, 'desk-states') })
    assert.match(told(judgeLetters(states('compact'), true)), /^ok/)
    assert.match(told(judgeLetters(states('compact,delete'), true)), /^error: 'desk-states' .*forgotten/)
    assert.match(told(judgeLetters(surveyOf(), false)), /^error: 'jobs\.dlq' does not exist/)
  })
})

describe('the group is judged', () => {
  test('by who is in it', () => {
    const judged = (of: Partial<GroupView>): string => told(judgeGroup(surveyOf({ group: group(of) })))
    const idle = { host: '10.0.0.8', topics: ['jobs'], partitions: 0 }
    assert.equal(judged({}), "ok: 'payouts' has 1 member on 10.0.0.7 and 1 partition")
    assert.match(judged({ members: [...group().members, idle] }), /^warning: .*1 of them have no partition/)
    assert.match(judged({ state: 'PreparingRebalance' }), /^warning: .*sharing out/)
    assert.match(judged({ protocol: 'range' }), /^warning: .*another program/)
    assert.match(judged({ members: [], state: 'Empty' }), /^ok: .*no member now/)
    assert.match(judged({ members: [], state: 'Dead', hasCommits: false }), /^ok: .*never/)
    assert.match(judged({ members: [], state: 'Dead' }), /^warning: .*newer protocol/)
  })

  test('by topics with waiting records that nobody reads', () => {
    const waiting = topic([{ end: 5n, committed: committed(3n) }], {}, 'mails')
    assert.match(told(judgeWorkers(surveyOf())), /^ok/)
    assert.match(told(judgeWorkers(surveyOf({ jobs: [waiting] }))), /^warning: 'mails' has 2 records/)
  })

  // D12 D14 D20
  test('by how far it is behind: above a limit, not at it', () => {
    const behind = (lag: bigint): Survey => surveyOf({ jobs: [topic([{ end: lag }, {}])] })
    const judged = (lag: bigint): string => told(judgeLag(behind(lag), '', { jobs: { warning: 100, critical: 500 } }))
    assert.match(judged(100n), /^ok: 100 records behind over 1 topic/)
    assert.match(judged(101n), /^warning: .*101 records behind on 'jobs', more than 100/)
    assert.match(judged(500n), /^warning/)
    assert.match(judged(501n), /^error: .*more than 500/)
    assert.match(told(judgeLag(behind(1_001n), '', {})), /^warning/)
    // Limits go by the type, which has no prefix.
    const prefixed = surveyOf({ jobs: [topic([{ end: 11n }], {}, 'app.jobs')] })
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
    assert.match(told(judgeOverdue(surveyOf({ jobs: [old] }))), /^warning: 2 records of 'jobs'/)
    const settled = topic([{ end: 9n, young: 6n, committed: committed(6n) }])
    assert.match(told(judgeOverdue(surveyOf({ jobs: [settled] }))), /^ok/)
    assert.match(told(judgeLost(surveyOf({ jobs: [old] }))), /^ok/)
    const cut = topic([{ begin: 8n, end: 9n, committed: committed(3n) }])
    assert.match(told(judgeLost(surveyOf({ jobs: [cut] }))), /^error: 5 records of 'jobs' deleted/)
  })

  test('by records in retry that keep the others of their partition back', () => {
    const retries = (count: number): Survey => {
      const retryStates = Array.from(
        { length: count },
        (_, n) => [3 + n, { starts: 1, dueMs: 7, firstFailureMs: 6 }] as const,
      )
      const metadata = encodeProgress(3, { finished: [], retryStates })
      return surveyOf({ jobs: [topic([{ end: 99n, committed: committed(3n, metadata) }, { end: 9n }])] })
    }
    assert.match(told(judgeRetries(retries(RETRIES_MAX - 1))), /^ok/)
    assert.match(told(judgeRetries(retries(RETRIES_MAX))), /^warning: 50 records of jobs\/0 wait for a retry/)
  })

  test('by transactions that are open for long', () => {
    const judged = (
      stable: bigint,
      recent: bigint,
      isolation: 'read_committed' | 'read_uncommitted' = 'read_committed',
    ) => told(judgeTransactions(surveyOf({ jobs: [topic([{ end: 9n, stable, recent }])] }), { isolation }))
    assert.match(judged(9n, 9n), /^ok/)
    assert.match(judged(5n, 5n), /^ok/)
    assert.match(judged(5n, 6n), /^warning: 4 records of jobs\/0 from offset 5 on wait for the end of a transaction/)
    assert.match(judged(5n, 6n, 'read_uncommitted'), /^ok: .*read_uncommitted/)
  })

  test('by records from the future', () => {
    const dated = (newestMs: number): Survey => surveyOf({ jobs: [topic([{ newestMs }])] })
    assert.match(told(judgeClock(dated(15_000), 10_000)), /^ok/)
    assert.match(told(judgeClock(dated(200_000), 10_000)), /^warning: .*3 min ahead/)
    assert.match(told(judgeClock(surveyOf(), 10_000)), /^ok/)
  })
})
