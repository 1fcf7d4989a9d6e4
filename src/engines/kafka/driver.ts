/** The part of the client that we build on. What it does beyond that loses, repeats or leaks in some situation. */
import type { Admin, Consumer, Producer } from '@platformatic/kafka'
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
