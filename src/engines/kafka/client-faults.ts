/** Errors of the client as ours: with a stable code, what is wrong, and what to do. The client's own is the cause. */
import { tlsAdvice } from '../../engine/secure-url.ts'
import {
  EngineError,
  type ErrorCode,
  fieldOf,
  isError,
  isMillraceError,
  type MillraceError,
  messageOf,
} from '../../errors.ts'

type Advice = readonly [code: ErrorCode, text: string]

const NO_LEADER: Advice = [
  'ERR_STORAGE_BUSY',
  'the brokers are choosing a leader or a coordinator; try again in a moment',
]
const TOO_FEW_REPLICAS: Advice = [
  'ERR_STORAGE_BUSY',
  'fewer replicas are in sync than min.insync.replicas asks for; bring the missing brokers back',
]
const RIGHTS = `see 'Rights' in docs/operating-kafka.md`

/** By Kafka's own name of the error. */
const KAFKA_ADVICE: Readonly<Record<string, Advice>> = {
  TOPIC_AUTHORIZATION_FAILED: [
    'ERR_STORAGE_READONLY',
    `this user lacks a right on the topic; give it with kafka-acls.sh, ${RIGHTS}`,
  ],
  GROUP_AUTHORIZATION_FAILED: [
    'ERR_STORAGE_READONLY',
    `this user lacks the right Read on the group of the URL (?group=); give it with kafka-acls.sh, ${RIGHTS}`,
  ],
  CLUSTER_AUTHORIZATION_FAILED: [
    'ERR_STORAGE_READONLY',
    `this user lacks a right on the cluster, such as DescribeConfigs; give it with kafka-acls.sh, ${RIGHTS}`,
  ],
  SASL_AUTHENTICATION_FAILED: [
    'ERR_STORAGE_OPEN',
    'the broker refused the login; check user and password, and that sasl= is the mechanism that the user was created for',
  ],
  UNSUPPORTED_SASL_MECHANISM: [
    'ERR_STORAGE_OPEN',
    'the broker does not take this sasl= mechanism; use one that it takes',
  ],
  ILLEGAL_SASL_STATE: [
    'ERR_STORAGE_OPEN',
    'this port of the broker takes no SASL; leave out sasl=, or give the port that does',
  ],
  UNKNOWN_TOPIC_OR_PARTITION: ['ERR_SCHEMA_MISSING', 'a topic is missing; create it'],
  INVALID_REPLICATION_FACTOR: [
    'ERR_STORAGE_FAILED',
    'there are fewer brokers than copies asked for; lower default.replication.factor, or start more brokers',
  ],
  POLICY_VIOLATION: ['ERR_STORAGE_FAILED', `a policy of the brokers refuses this; ask who runs them`],
  NOT_ENOUGH_REPLICAS: TOO_FEW_REPLICAS,
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: TOO_FEW_REPLICAS,
  LEADER_NOT_AVAILABLE: NO_LEADER,
  NOT_LEADER_OR_FOLLOWER: NO_LEADER,
  COORDINATOR_NOT_AVAILABLE: NO_LEADER,
  COORDINATOR_LOAD_IN_PROGRESS: NO_LEADER,
  NOT_COORDINATOR: NO_LEADER,
  REQUEST_TIMED_OUT: ['ERR_STORAGE_BUSY', 'the broker was too slow; look at its load, and try again'],
}

const SOCKET = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ECONNRESET|EPIPE)$/
/** By the client's words, where it gives no code. */
const WORDS: readonly (readonly [pattern: RegExp, advice: Advice])[] = [
  [/Broker requires TLS/, ['ERR_STORAGE_OPEN', 'the broker wants TLS on this port; write kafkas: instead of kafka:']],
  [
    /verify the broker supports TLS/,
    [
      'ERR_STORAGE_OPEN',
      'the broker does no TLS on this port; write kafka: instead of kafkas:, or give the port that does',
    ],
  ],
  [/^Unknown topic/, ['ERR_SCHEMA_MISSING', 'a topic is missing; create it']],
  [/timed out/, ['ERR_STORAGE_BUSY', 'no broker answered in time; is it there, and is the network?']],
  [
    /Connection closed|Connection error|socket hang up/,
    [
      'ERR_STORAGE_BUSY',
      'the broker closed the connection; if it does so every time, it wants TLS, SASL or a client certificate that it trusts, and the URL must say so: see docs/operating-kafka.md',
    ],
  ],
]
const AWAY: Advice = ['ERR_STORAGE_BUSY', 'no broker answers there; start it, or check host and port']
const DEPTH_MAX = 10

/** Outermost first. The client wraps tries into tries, and what matters is at the bottom. */
function* partsOf(error: unknown, depth = 0): Generator<Error> {
  if (!isError(error) || depth > DEPTH_MAX) return
  yield error
  const several: unknown = fieldOf(error, 'errors')
  for (const one of Array.isArray(several) ? several : []) yield* partsOf(one, depth + 1)
  yield* partsOf(error.cause, depth + 1)
}

function textOf(error: unknown, name: string): string {
  const value = fieldOf(error, name)
  return typeof value === 'string' ? value : ''
}

/** Turns errors of the client into coded ones. Ours pass through, also from inside the client. */
export function toEngineError(error: unknown): MillraceError {
  if (isMillraceError(error)) return error
  const parts = [...partsOf(error)]
  const own = parts.find((part) => isMillraceError(part))
  if (own !== undefined && isMillraceError(own)) return own
  const [code, advice, detail] = adviceFor(parts)
  const said = [detail, ...namesIn(parts)].filter((text) => text !== '').join(', ')
  return new EngineError(code, `Kafka: ${advice}${said === '' ? '' : ` (${said})`}`, { cause: error })
}

function adviceFor(parts: readonly Error[]): readonly [code: ErrorCode, advice: string, detail: string] {
  for (const part of parts) {
    const known = tlsAdvice(textOf(part, 'code'))
    if (known !== null) return ['ERR_STORAGE_OPEN', known, textOf(part, 'code')]
  }
  // The last is the newest: what came before may have been about a leader that has moved since.
  const ids = parts.flatMap((part) => textOf(part, 'apiId') || [])
  for (const id of ids.toReversed()) {
    const known = Object.hasOwn(KAFKA_ADVICE, id) ? KAFKA_ADVICE[id] : undefined
    if (known !== undefined) return [...known, id]
  }
  if (parts.some((part) => textOf(part, 'code') === 'PLT_KFK_AUTHENTICATION'))
    return ['ERR_STORAGE_OPEN', 'the login failed; check user, password and sasl=', lastTextOf(parts)]
  const socket = parts.find((part) => SOCKET.test(textOf(part, 'code')))
  const words = parts.toReversed().map((part) => WORDS.find(([pattern]) => pattern.test(part.message)))
  const known = words.find((found) => found !== undefined)
  if (known !== undefined) return [...known[1], addressOf(parts)]
  if (socket !== undefined) return [...AWAY, [textOf(socket, 'code'), addressOf(parts)].filter(Boolean).join(' ')]
  const [id] = ids
  return ['ERR_STORAGE_FAILED', 'a call failed; see the cause', id ?? lastTextOf(parts)]
}

/** `host:port`, or the topic that the client names. */
function addressOf(parts: readonly Error[]): string {
  const found = parts.map(({ message }) => /(?:Connection to|Unknown topic) (\S+?)\.?(?: |$)/.exec(message)?.[1])
  return found.find((text) => text !== undefined) ?? ''
}

function lastTextOf(parts: readonly Error[]): string {
  const last = parts.at(-1)
  return last === undefined ? '' : messageOf(last)
}

const NAMES = ['name', 'topicName', 'topic', 'resourceName', 'groupId', 'group']

/** The topic or group that an error of a response is about: the client keeps the response, and the place in it. */
function namesIn(parts: readonly Error[]): readonly string[] {
  const names = parts.flatMap((part) => {
    const response = fieldOf(part, 'response')
    const [inner] = Array.isArray(fieldOf(part, 'errors')) ? [...partsOf(part)].slice(1) : []
    let place: unknown = response
    let name = ''
    for (const step of textOf(inner, 'path').split('/').filter(Boolean)) {
      place = fieldOf(place, step)
      name ||= NAMES.map((field) => textOf(place, field)).find((text) => text !== '') ?? ''
    }
    return name === '' ? [] : [name]
  })
  return [...new Set(names)]
}

/** The same client, but its calls reject with Millrace errors. */
export function explaining<Calls extends object>(client: Calls): Calls {
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        const answer: unknown = Reflect.apply(value, target, args)
        return answer instanceof Promise ? explained(answer) : answer
      }
    },
  })
}

export function explained<Value>(answer: Promise<Value>): Promise<Value> {
  return answer.catch((error: unknown) => {
    throw toEngineError(error)
  })
}
