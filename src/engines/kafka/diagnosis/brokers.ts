/** The brokers: whether each is reached, how old they are, how fast they answer, and what they let a group do. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { failure, formatAge, ok, plural, warning } from '../../../engine/findings.ts'
import { judgeLatency, measureLatency } from '../../../engine/latency.ts'
import { systemClock } from '../../../time/clock.ts'
import { METADATA_BYTES_MAX } from '../commit-metadata.ts'
import { METADATA_ADVICE, metadataBytesMaxOf, metadataTooSmall } from '../commits.ts'
import type { Admin, Client } from '../driver.ts'
import { within } from '../faults.ts'
import type { KafkaOptions } from '../options.ts'
import { configsOf, numberOf, type Settings } from './settings.ts'

export interface Protocol {
  readonly name: string
  readonly minVersion: number
  readonly maxVersion: number
}

/** By the newest version of Fetch that a broker speaks: none says of itself which Kafka it is. */
const FETCH_OF_KAFKA: readonly (readonly [version: number, kafka: string])[] = [
  [18, '4.1'],
  [17, '3.9'],
  [16, '3.7'],
  [15, '3.5'],
  [13, '3.1'],
]
/** We fetch by the ids of topics. */
const FETCH_MIN = 13
const FETCH_TESTED = 18

/** A group that nobody is in for longer than this forgets how far it was. */
const OFFSETS_MINUTES_MIN = 24 * 60

export async function lookAtBrokers(admin: Admin, { answerMs }: KafkaOptions): Promise<readonly Finding[]> {
  const { brokers } = await admin.metadata({ topics: [], forceUpdate: true })
  const findings: Finding[] = []
  for (const [id, { host, port }] of brokers) {
    const isReached = await within(systemClock, answerMs, admin.connections.get({ host, port })).then(
      () => true,
      () => false,
    )
    if (!isReached) findings.push(judgeUnreached(id, `${host}:${port}`))
  }
  if (findings.length === 0) findings.push(ok('brokers', `${plural(brokers.size, 'broker')}, and each answers`))
  return findings
}

function judgeUnreached(id: number, address: string): Finding {
  return failure(
    'brokers',
    `broker ${id} does not answer at ${address}, which the cluster gives as its address: its partitions stand still`,
    'Start it; if it runs, see that its advertised.listeners can be reached from here.',
  )
}

export async function lookAtVersion(admin: Admin): Promise<Finding> {
  return judgeVersion(await admin.listApis())
}

export function judgeVersion(protocols: readonly Protocol[]): Finding {
  const fetch = protocols.find(({ name }) => name === 'Fetch')
  if (fetch === undefined) return failure('broker version', 'it hands out no records', 'Give the address of a broker.')
  const known = FETCH_OF_KAFKA.find(([version]) => fetch.maxVersion >= version)?.[1] ?? 'an old'
  const text = `speaks the protocol of Kafka ${known}${fetch.maxVersion >= FETCH_TESTED ? ' or newer' : ''}`
  if (fetch.maxVersion < FETCH_MIN)
    return failure('broker version', `too old: ${text}`, 'Upgrade the brokers to Kafka 3.1 or newer.')
  // What nobody supports any more was taken out in 4.0.
  if (fetch.maxVersion >= FETCH_TESTED || fetch.minVersion >= 4) return ok('broker version', text)
  return warning('broker version', `${text}, and Millrace is tested with 4.1`, 'Upgrade the brokers to Kafka 4.')
}

export async function lookAtLatency(admin: Admin): Promise<Finding> {
  const took = await measureLatency(systemClock, () => admin.metadata({ topics: [], forceUpdate: true }))
  return judgeLatency(took, {
    cost: 'every enqueue and every commit waits for one',
    advice: 'Run workers and producers nearer to the brokers.',
  })
}

const GROUP_SETTINGS = ['group.min.session.timeout.ms', 'group.max.session.timeout.ms', 'offsets.retention.minutes']

export async function lookAtTimeouts(
  admin: Admin,
  client: Client,
  options: KafkaOptions,
  handlerMs: number | null,
): Promise<readonly Finding[]> {
  const { brokers } = await admin.metadata({ topics: [] })
  const [first] = brokers.keys()
  if (first === undefined) return [failure('timeouts', 'no broker is known', 'Start one, then look again.')]
  const [settings = new Map()] = (
    await configsOf(admin, client.ConfigResourceTypes.BROKER, [String(first)], GROUP_SETTINGS)
  ).values()
  return [judgeSession(options, settings), judgeDrain(options, handlerMs), ...judgeOffsets(settings)]
}

export function judgeSession({ sessionMs, heartbeatMs }: KafkaOptions, settings: Settings): Finding {
  const min = numberOf(settings, 'group.min.session.timeout.ms') ?? 0
  const max = numberOf(settings, 'group.max.session.timeout.ms') ?? Number.POSITIVE_INFINITY
  const text = `session ${formatAge(sessionMs)}, a beat every ${heartbeatMs} ms`
  if (sessionMs < min || sessionMs > max) {
    return failure(
      'timeouts',
      `${text}: the broker lets nobody join with it, only with ${min} to ${max} ms`,
      `Give ?session= a value in between, or change group.min.session.timeout.ms and group.max.session.timeout.ms.`,
    )
  }
  if (heartbeatMs * 3 > sessionMs) {
    return warning('timeouts', `${text}: two lost beats end a membership`, 'Let ?session= be three beats or more.')
  }
  return ok(
    'timeouts',
    `${text}: a handler that blocks the event loop for longer than the session loses its partitions`,
  )
}

/** A handler that waits is beaten for, however long it takes; only a move of its partition ends it. */
export function judgeDrain({ drainMs }: KafkaOptions, handlerMs: number | null): Finding {
  const text = `a handler may go on for ${formatAge(drainMs)} when its partition moves; then it is aborted and started elsewhere`
  if (handlerMs === null || handlerMs <= drainMs) return ok('handlers', text)
  return warning(
    'handlers',
    `${text}, and handlers here take up to ${formatAge(handlerMs)}`,
    `Give ?drain=${handlerMs}, or let handlers listen to their signal and repeat themselves without harm.`,
  )
}

export async function lookAtCommits(admin: Admin, client: Client): Promise<readonly Finding[]> {
  return judgeCommitRoom(await metadataBytesMaxOf(admin, client, systemClock))
}

export function judgeCommitRoom(bytes: number | null): readonly Finding[] {
  if (bytes === null || bytes >= METADATA_BYTES_MAX) return []
  return [failure('commits', metadataTooSmall(bytes), METADATA_ADVICE)]
}

export function judgeOffsets(settings: Settings): readonly Finding[] {
  const minutes = numberOf(settings, 'offsets.retention.minutes')
  if (minutes === null || minutes >= OFFSETS_MINUTES_MIN) return []
  return [
    warning(
      'commits',
      `a group without members forgets after ${formatAge(minutes * 60_000)} how far it was, and begins anew`,
      'Raise offsets.retention.minutes of the brokers; Kafka has 7 days unless told.',
    ),
  ]
}
