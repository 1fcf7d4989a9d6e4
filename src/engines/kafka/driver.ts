/** The part of the client that we build on. What it does beyond that loses, repeats or leaks in some situation. */
import type { Admin, API, ConnectionPool, Consumer, Producer } from '@platformatic/kafka'
import { EngineError } from '../../errors.ts'
import type { KafkaOptions } from './options.ts'

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

interface ClientOptions {
  readonly clientId: string
  readonly bootstrapBrokers: string[]
  readonly connectTimeout: number
  readonly requestTimeout: number
  readonly retryDelay: number
}

/** Shared by all parts. How often each repeats by itself is its own matter. */
export function clientOptions({ brokers, answerMs }: KafkaOptions): ClientOptions {
  return {
    clientId: 'millrace',
    bootstrapBrokers: [...brokers],
    connectTimeout: answerMs,
    requestTimeout: answerMs,
    retryDelay: 200,
  }
}

/** Whether an error, or one that it is made of, is this one of Kafka's. */
export function isKafkaError(client: Client, error: unknown, ...ids: readonly string[]): boolean {
  if (!(error instanceof Error)) return false
  return ids.some((id) => client.findErrorBy(error, 'apiId', id) !== null)
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
    const { clientId, connectTimeout, requestTimeout } = clientOptions(options)
    this.#pool = new client.ConnectionPool(clientId, { connectTimeout, requestTimeout })
  }

  async call<Arguments extends unknown[], Answer>(name: string, ...args: Arguments): Promise<Answer> {
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
