/** What the tests of the Kafka engine are made of: engines, members in processes of their own, and plain records. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as pass } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Producer } from '@platformatic/kafka'
import type { Consumer } from '../../src/engine/engine.ts'
import type { Lease, Outcome } from '../../src/engine/outcome.ts'
import { KafkaEngine } from '../../src/engines/kafka/engine.ts'
import { parseUrl } from '../../src/engines/kafka/options.ts'
import { systemClock } from '../../src/time/clock.ts'
import { type KafkaServer, withParameters } from '../servers/kafka.ts'

export const never = new AbortController().signal
export const complete: Outcome = { kind: 'complete', result: 'null', durationMs: 1 }
export const boom = { name: 'TypeError', code: null, message: 'boom', stack: 'TypeError: boom\n    at here' }
export const dead: Outcome = { kind: 'dead', error: boom }

/** Tests wait for the end of sessions in real time, so they are short; a machine may stand still for a second or two. */
export const SESSION_MS = 4_000
/** No test waits for the end of this one, and no pause of the machine is as long. */
const LASTING_MS = 60_000

/** Of a member that is not to be lost, whatever the machine does. */
export function urlOf(server: KafkaServer, group: string, parameters = ''): string {
  return urlWith(server, group, LASTING_MS, parameters)
}

/** Of a member that is missed soon. */
export function briefUrlOf(server: KafkaServer, group: string, parameters = ''): string {
  return urlWith(server, group, SESSION_MS, parameters)
}

export function urlWith(server: KafkaServer, group: string, sessionMs: number, parameters = ''): string {
  return withParameters(server, `group=${group}&session=${sessionMs}&heartbeat=100&drain=12000${parameters}`)
}

export async function openEngine(url: string): Promise<KafkaEngine> {
  const engine = await KafkaEngine.connect(parseUrl(url), { clock: systemClock, migrate: true })
  return engine
}

export function consume(engine: KafkaEngine, type: string): Promise<Consumer> {
  return engine.consume({ types: [{ type, leaseMs: 600_000 }], worker: 'payout-executor-1' })
}

/** Claims until there are as many as asked for, or the time is over. */
export async function claimed(consumer: Consumer, count: number, waitMs = 60_000): Promise<readonly Lease[]> {
  const leases: Lease[] = []
  const untilMs = Date.now() + waitMs
  while (leases.length < count && Date.now() < untilMs) {
    const max = count - leases.length
    leases.push(...(await consumer.claim({ max, waitMs: Math.max(1, untilMs - Date.now()), signal: never })))
  }
  return leases
}

/**
 * Writes plain records, as a program does that has never heard of us. Idempotent: partitions of a new topic get their leaders
 * one after another, and the client repeats a request that one of them refused for all of them.
 */
export async function produce(
  server: KafkaServer,
  records: readonly {
    topic: string
    partition?: number
    key?: string
    value?: string | Buffer
    timestampMs?: number
  }[],
): Promise<void> {
  const producer = new Producer({
    ...{ clientId: 'plain', bootstrapBrokers: [server.address] },
    ...{ idempotent: true, retries: 50, retryDelay: 200 },
  })
  const messages = records.map(({ topic, partition, key, value, timestampMs }) => ({
    topic,
    ...(partition !== undefined && { partition }),
    ...(key !== undefined && { key: Buffer.from(key) }),
    ...(value !== undefined && { value: Buffer.from(value) }),
    ...(timestampMs !== undefined && { timestamp: BigInt(timestampMs) }),
  }))
  try {
    await producer.send({ messages, acks: -1 })
  } finally {
    await producer.close()
  }
}

export async function eventually(holds: () => boolean | Promise<boolean>, what: string, ms = 60_000): Promise<void> {
  const untilMs = Date.now() + ms
  while (!(await holds())) {
    if (Date.now() > untilMs) throw new Error(`${what} did not come true within ${ms} ms`)
    await pass(20)
  }
}

export interface Holder {
  readonly process: ChildProcess
  tell(deed: string): void
  /** The next line that says this. */
  heard(event: string): Promise<Readonly<Record<string, unknown>>>
  end(): Promise<void>
}

/** A member in a process of its own. */
export function startHolder(url: string, type: string): Holder {
  const file = fileURLToPath(new URL('./holder.ts', import.meta.url))
  const child = spawn(process.execPath, [file, url, type], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines: Record<string, unknown>[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)))
  return {
    process: child,
    tell: (deed) => void child.stdin.write(`${deed}\n`),
    heard: async (event) => {
      const find = (): number => lines.findIndex((line) => line.event === event)
      await eventually(() => find() >= 0, `'${event}' of the other process`)
      return lines.splice(find(), 1)[0] ?? {}
    },
    end: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await gone
    },
  }
}
