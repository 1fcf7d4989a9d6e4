/** The part of the client that we build on. What it does beyond that loses, repeats or leaks in some situation. */
import type { Admin, API, ConnectionPool, Consumer, Producer, SASLOptions } from '@platformatic/kafka'
import { servernameOf, tlsOptions } from '../../engine/secure-url.ts'
import { EngineError, isMillraceError } from '../../errors.ts'
import { explained } from './client-faults.ts'
import type { KafkaOptions } from './options.ts'
import type { KafkaSasl, KafkaSecurity } from './security.ts'

export type Client = typeof import('@platformatic/kafka')
/** Keys and values stay bytes. */
export type RawConsumer = Consumer<Buffer, Buffer, Buffer, Buffer>
export type RawProducer = Producer<Buffer, Buffer, Buffer, Buffer>
export type { Admin }

export async function loadClient(): Promise<Client> {
  return import('@platformatic/kafka').catch((error: unknown) => {
    throw new EngineError('ERR_MODULE_MISSING', 'To use Kafka: npm install @platformatic/kafka@2.12.1', {
      cause: error,
    })
  })
}

/** Shared by all parts. How often each repeats by itself is its own matter. */
export function clientOptions({ brokers, answerMs, security }: KafkaOptions, clientId = 'millrace') {
  return {
    clientId,
    bootstrapBrokers: [...brokers],
    connectTimeout: answerMs,
    requestTimeout: answerMs,
    retryDelay: 200,
    ...securityOptions(security, brokers),
  }
}

/** The client's own options. Throws where a file or a variable is missing, so call it before anything is opened. */
function securityOptions({ tls, sasl }: KafkaSecurity, brokers: readonly string[]) {
  const names = brokers.map((broker) => broker.replace(/:\d+$/, '').replace(/^\[|\]$/g, ''))
  // With `true` the client takes the host of each broker.
  const tlsServerName = tls?.servername ?? names.every((name) => servernameOf({}, name) !== null)
  return {
    ...(tls !== null && { tls: tlsOptions(tls), tlsServerName }),
    ...(sasl !== null && { sasl: saslOptions(sasl) }),
  }
}

const MECHANISMS = Object.freeze({
  plain: 'PLAIN',
  'scram-sha-256': 'SCRAM-SHA-256',
  'scram-sha-512': 'SCRAM-SHA-512',
  oauthbearer: 'OAUTHBEARER',
} as const)

function saslOptions(sasl: KafkaSasl): SASLOptions {
  const mechanism = MECHANISMS[sasl.mechanism]
  if (sasl.mechanism !== 'oauthbearer') {
    const { username, password } = sasl
    return { mechanism, username, password }
  }
  const { token, extensions } = sasl
  return {
    mechanism,
    token,
    ...(extensions !== undefined && { oauthBearerExtensions: { ...extensions } }),
    // A broker that refuses a token answers with the reason, and not with an error.
    authBytesValidator: (bytes, callback) => {
      if (bytes === null || bytes.length === 0) callback(null, bytes)
      else
        callback(
          new EngineError(
            'ERR_STORAGE_OPEN',
            `the broker refused the token (${bytes.toString('utf8')}); check that it has not expired, and its issuer, audience and signature`,
          ),
        )
    },
  }
}

/** Connections beside those of the client, for calls that must not wait behind its own. */
export function createPool(client: Client, options: KafkaOptions, requestTimeout = options.answerMs): ConnectionPool {
  const { clientId, bootstrapBrokers: _, retryDelay: __, ...connection } = clientOptions(options)
  return guarded(new client.ConnectionPool(clientId, { ...connection, requestTimeout }))
}

/**
 * A connection of the client listens for its first error alone. A second one, such as a reset after a refused login, would
 * end the process. One that the broker has closed keeps its timer for the next login, which would keep the process alive,
 * and then fail and take the connection that replaced it out of the pool; closing it once more ends that timer.
 */
export function guarded(pool: ConnectionPool): ConnectionPool {
  pool.on('connecting', ({ connection }) => {
    connection.on('error', () => {})
    connection.once('close', () => void connection.close())
  })
  return pool
}

/**
 * The leader of a group divides all topics that it tracks by then, with the metadata of those that it joined with. One that
 * was tracked since, or whose metadata was dropped meanwhile, would be an exception that nothing catches and end the
 * process. So every answer has all topics that were asked for or are tracked, or is an error, after which it joins again.
 */
export function guardMember(client: Client, member: RawConsumer): void {
  guarded(member.connections)
  const ask = member[client.kMetadata].bind(member)
  member[client.kMetadata] = (options, callback) =>
    ask(options, (error, metadata) => {
      if (error !== null || metadata === undefined) return callback(error, metadata)
      for (const topic of [...(options.topics ?? []), ...member.topics.current]) {
        const known = metadata.topics.get(topic) ?? member.currentMetadata?.topics.get(topic)
        if (known === undefined) {
          const text = `The metadata of ${topic} is not known yet.`
          return callback(new client.NetworkError(text, { canRetry: true, hasStaleMetadata: true }), undefined)
        }
        metadata.topics.set(topic, known)
      }
      callback(null, metadata)
    })
}

/** Whether an error, or one that it is made of, is this one of Kafka's. */
export function isKafkaError(client: Client, error: unknown, ...ids: readonly string[]): boolean {
  const raw = isMillraceError(error) ? error.cause : error
  if (!(raw instanceof Error)) return false
  return ids.some((id) => client.findErrorBy(raw, 'apiId', id) !== null)
}

/**
 * Low-level calls to the coordinator of a member's group, in the member's own version of the protocol. They have a
 * connection of their own: the broker answers one request of a connection after another, and a join is answered only
 * when all others have joined too, so behind it no heartbeat and no commit would be heard for as long.
 */
export class GroupCalls {
  readonly #client: Client
  readonly #member: RawConsumer
  readonly #pool: ConnectionPool

  constructor(client: Client, member: RawConsumer, options: KafkaOptions) {
    this.#client = client
    this.#member = member
    this.#pool = createPool(client, options)
  }

  call<Arguments extends unknown[], Answer>(name: string, ...args: Arguments): Promise<Answer> {
    return explained(this.#call(name, args))
  }

  async #call<Arguments extends unknown[], Answer>(name: string, args: Arguments): Promise<Answer> {
    const [api, nodeId] = await Promise.all([this.#apiOf<Arguments, Answer>(name), this.#member.findGroupCoordinator()])
    const broker = this.#member.currentMetadata?.brokers.get(nodeId)
    if (broker === undefined)
      throw new EngineError('ERR_STORAGE_BUSY', `the broker ${nodeId} of the group is not known yet`)
    return api.async(await this.#pool.get(broker), ...args)
  }

  #apiOf<Arguments extends unknown[], Answer>(name: string): Promise<API<Arguments, Answer>> {
    return new Promise((resolve, reject) => {
      this.#member[this.#client.kGetApi]<Arguments, Answer>(name, (error, api) => {
        if (error !== null || api === undefined) reject(error ?? new Error(`the broker has no ${name}`))
        else resolve(api)
      })
    })
  }

  async close(): Promise<void> {
    await this.#pool.close()
  }
}
