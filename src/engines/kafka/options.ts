import { EngineError } from '../../errors.ts'
import { redactUrl } from '../../job/error-record.ts'
import { type KafkaSecurity, parseSecurity, SECURITY_NAMES } from './security.ts'

/**
 * What is read of transactions, as other consumers of Kafka call it. Committed: records of aborted ones never, and nothing
 * from the first record of an open one on, until it ends. Uncommitted: every record, as soon as it is written.
 */
export type Isolation = 'read_committed' | 'read_uncommitted'

/** Where a group starts in a partition in which it has committed nothing: at the oldest record, or at the end of the log. */
export type From = 'earliest' | 'latest'

/** How the engine is set up, by its URL. */
export interface KafkaOptions {
  /** `host:port` of some brokers; the others are found through them. */
  readonly brokers: readonly string[]
  /** The consumer group: all workers with the same one share the records. */
  readonly group: string
  /** How long a member may be silent before its partitions go to others. */
  readonly sessionMs: number
  readonly heartbeatMs: number
  /** How long running handlers of a partition that moves to another member may still finish. */
  readonly drainMs: number
  /** How long a call may wait for its answer. */
  readonly answerMs: number
  /** Topics that are missing are created with this many partitions; 0 creates none. */
  readonly partitions: number
  /** What every topic's name begins with, before the type. */
  readonly prefix: string
  /** What a record that waits for its retry keeps back, by topic. */
  readonly hold: Holds
  readonly isolation: Isolation
  readonly from: From
  readonly security: KafkaSecurity
  /** What the topics of the dead-letter desk begin with. All who work on one broker's letters have the same. */
  readonly desk: string
}

/** The compacted topic with the states of dead letters and the audit. */
export function statesTopicOf({ desk }: Pick<KafkaOptions, 'desk'>): string {
  return `${desk}-states`
}

export function archiveTopicOf({ desk }: Pick<KafkaOptions, 'desk'>): string {
  return `${desk}-archive`
}

const NUMBERS = Object.freeze({
  session: { otherwise: 30_000, min: 1_000, max: 1_800_000 },
  heartbeat: { otherwise: 3_000, min: 10, max: 600_000 },
  drain: { otherwise: 20_000, min: 0, max: 1_800_000 },
  timeout: { otherwise: 5_000, min: 100, max: 600_000 },
  partitions: { otherwise: 6, min: 0, max: 10_000 },
})
type NumberName = keyof typeof NUMBERS

const NAMES = ['group', 'prefix', 'hold', 'isolation', 'from', 'desk', ...Object.keys(NUMBERS), ...SECURITY_NAMES]
const FORM = `give 'kafka://host:9092,host:9092?group=name', or 'kafkas://user:password@host:9092?sasl=scram-sha-512'; the parameters are ${NAMES.join(', ')}`
/** Everything up to the last @ is the login: a password that is not written as %XX must not appear in an error as a host. */
const URL_FORM = /^(kafkas?):\/\/(?:(.*)@)?([^/?#@]+)\/?(?:\?([^#]*))?$/
const BROKER = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?$/
const GROUP = /^[A-Za-z0-9._-]{1,200}$/
const PREFIX = /^[A-Za-z0-9._-]{0,100}$/
const PORT_DEFAULT = 9_092

/** Every parameter must be ours: one that is misspelt would change nothing in silence. */
export function parseUrl(text: string): KafkaOptions {
  const refuse = (why: string): never => {
    throw new EngineError('ERR_ENGINE_URL', `'${redactUrl(text)}' ${why}; ${FORM}`)
  }
  const [, scheme, login, hosts = '', query = ''] = URL_FORM.exec(text) ?? []
  if (scheme === undefined) return refuse('is no URL of Kafka')
  const brokers = hosts
    .split(',')
    .map((broker) => (isBroker(broker) ? withPort(broker) : refuse(`names '${broker}', which is no broker`)))
  const parameters = new URLSearchParams(query)
  for (const name of parameters.keys()) {
    if (!NAMES.includes(name)) refuse(`has an unknown parameter '${name}'`)
    if (parameters.getAll(name).length > 1) refuse(`has '${name}' twice`)
  }
  const whole = (name: NumberName): number => {
    const { otherwise, min, max } = NUMBERS[name]
    const given = parameters.get(name)
    const value = given === null ? otherwise : Number(given)
    const isWhole = Number.isInteger(value) && value >= min && value <= max && given !== ''
    return isWhole ? value : refuse(`has ${name}=${given}, which is no whole number from ${min} to ${max}`)
  }
  const group = parameters.get('group') ?? 'millrace'
  if (!GROUP.test(group)) refuse(`has the group '${group}'; it may have letters, digits and ._- alone`)
  const hold = parseHolds(parameters.get('hold') ?? 'key')
  if (hold === null)
    return refuse(`has hold=${parameters.get('hold')}; it is 'key' or 'partition', or such as 'key,topic:partition'`)
  const isolation = parameters.get('isolation') ?? 'read_committed'
  if (!isIsolation(isolation)) return refuse(`has isolation=${isolation}; it is 'read_committed' or 'read_uncommitted'`)
  const from = parameters.get('from') ?? 'earliest'
  if (from !== 'earliest' && from !== 'latest') return refuse(`has from=${from}; it is 'earliest' or 'latest'`)
  const prefix = parameters.get('prefix') ?? ''
  if (!PREFIX.test(prefix)) refuse(`has the prefix '${prefix}'; it may have letters, digits and ._- alone`)
  const desk = parameters.get('desk') ?? 'millrace.dlq'
  if (!GROUP.test(desk)) refuse(`has the desk '${desk}'; it may have letters, digits and ._- alone`)
  const sessionMs = whole('session')
  const heartbeatMs = parameters.has('heartbeat') ? whole('heartbeat') : Math.min(3_000, Math.floor(sessionMs / 3))
  if (heartbeatMs * 2 > sessionMs)
    refuse(`has a heartbeat of ${heartbeatMs} ms, which one lost beat would make too late`)
  const given = { isTlsScheme: scheme === 'kafkas', login: parseLogin(login, refuse), parameters }
  return {
    brokers,
    group,
    sessionMs,
    heartbeatMs,
    drainMs: whole('drain'),
    answerMs: whole('timeout'),
    partitions: whole('partitions'),
    prefix,
    hold,
    isolation,
    from,
    security: parseSecurity(given, refuse),
    desk,
  }
}

function parseLogin(text: string | undefined, refuse: (why: string) => never) {
  if (text === undefined) return { username: null, password: null }
  const [, user = '', password] = /^([^:]*)(?::(.*))?$/s.exec(text) ?? []
  try {
    return {
      username: decodeURIComponent(user),
      password: password === undefined ? null : decodeURIComponent(password),
    }
  } catch {
    return refuse('has a user or password with a % that begins no character; write % as %25')
  }
}

function isIsolation(text: string): text is Isolation {
  return text === 'read_committed' || text === 'read_uncommitted'
}

function isBroker(text: string): boolean {
  return BROKER.test(text)
}

function withPort(broker: string): string {
  return /:\d+$/.test(broker) && !broker.endsWith(']') ? broker : `${broker}:${PORT_DEFAULT}`
}

/** What a record that waits for its retry keeps back: those of its own key, or all of its partition. */
export type Hold = 'key' | 'partition'

export interface Holds {
  readonly otherwise: Hold
  /** By topic, without the prefix. */
  readonly topics: Readonly<Record<string, Hold>>
}

/** `key`, `partition`, or with topics of their own: `key,escrow.commands:partition`. Null when it says something else. */
export function parseHolds(text: string): Holds | null {
  let otherwise: Hold | null = null
  const topics = new Map<string, Hold>()
  for (const part of text.split(',')) {
    const [first = '', second, ...more] = part.split(':')
    const hold = second ?? first
    if (!isHold(hold) || more.length > 0 || (second !== undefined && (first === '' || topics.has(first)))) return null
    if (second !== undefined) topics.set(first, hold)
    else if (otherwise === null) otherwise = hold
    else return null
  }
  return { otherwise: otherwise ?? 'key', topics: Object.fromEntries(topics) }
}

export function holdOf({ hold, prefix }: { readonly hold: Holds; readonly prefix: string }, topic: string): Hold {
  const name = topic.slice(prefix.length)
  return (Object.hasOwn(hold.topics, name) ? hold.topics[name] : undefined) ?? hold.otherwise
}

function isHold(text: string): text is Hold {
  return text === 'key' || text === 'partition'
}
