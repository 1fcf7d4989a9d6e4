/** What a test does to a broker outside of any engine, as somebody with Kafka's own tools would. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { Admin } from '@platformatic/kafka'
import { kafkaJars } from './kafka-broker.ts'

interface Server {
  /** Of one broker, or of several with commas between them. */
  readonly address: string
}

/** A name of a topic or a group that nobody else uses, not in another process either. */
export function freshName(prefix = 'case'): string {
  return `${prefix}-${process.pid}-${randomBytes(4).toString('hex')}`
}

export async function withAdmin<Result>(server: Server, use: (admin: Admin) => Promise<Result>): Promise<Result> {
  const admin = new Admin({ clientId: 'millrace-tests', bootstrapBrokers: server.address.split(','), retryDelay: 200 })
  try {
    return await use(admin)
  } finally {
    await admin.close()
  }
}

/**
 * Creates it with these settings, such as `{ 'cleanup.policy': 'compact' }`. The broker hears of it a moment after its
 * controller has answered; a member that joined in between would get no partition.
 */
export async function createTopic(
  server: Server,
  topic: string,
  partitions = 1,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  const configs = Object.entries(settings).map(([name, value]) => ({ name, value }))
  await withAdmin(server, async (admin) => {
    await admin.createTopics({ topics: [topic], partitions, replicas: 1, configs })
    while (!(await admin.listTopics()).includes(topic)) await delay(10)
  })
}

/** A new topic that nobody else uses. */
export async function freshTopic(server: Server, prefix = 'case', partitions = 1): Promise<string> {
  const topic = freshName(prefix)
  await createTopic(server, topic, partitions)
  return topic
}

/** By partition, the offset that the next record gets. */
export async function endOffsets(server: Server, topic: string): Promise<readonly bigint[]> {
  return offsetsAt(server, topic, -1n)
}

/** By partition, the first offset that is still there. */
export async function startOffsets(server: Server, topic: string): Promise<readonly bigint[]> {
  return offsetsAt(server, topic, -2n)
}

async function offsetsAt(server: Server, topic: string, timestamp: bigint): Promise<readonly bigint[]> {
  return withAdmin(server, async (admin) => {
    const known = (await admin.metadata({ topics: [topic] })).topics.get(topic)
    const count = known?.partitionsCount ?? 0
    const partitions = Array.from({ length: count }, (_, partitionIndex) => ({ partitionIndex, timestamp }))
    const offsets: bigint[] = Array(count).fill(-1n)
    for (const listed of await admin.listOffsets({ topics: [{ name: topic, partitions }] }))
      for (const partition of listed.partitions) offsets[partition.partitionIndex] = partition.offset
    return offsets
  })
}

export interface CommittedOffset {
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  readonly metadata: string
}

/** What the group has committed, ordered by topic and partition. */
export async function groupOffsets(server: Server, group: string): Promise<readonly CommittedOffset[]> {
  const groups = await withAdmin(server, (admin) => admin.listConsumerGroupOffsets({ groups: [group] }))
  return groups
    .flatMap(({ topics }) => topics)
    .flatMap(({ name, partitions }) =>
      partitions.map((partition) => ({
        topic: name,
        partition: partition.partitionIndex,
        offset: partition.committedOffset,
        metadata: partition.metadata ?? '',
      })),
    )
    .sort((a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition)
}

/** One record as the console consumer prints it. Kafka's console prints a missing one as `null`. */
export interface ConsoleRecord {
  readonly partition: number
  readonly offset: bigint
  readonly key: string
  /** As printed: `name:value,name:value`, or `NO_HEADERS`. */
  readonly headers: string
  readonly value: string
}

/**
 * Keys, headers and values may have tabs and line feeds, a stack trace above all. The header with the time of the original
 * record is eight bytes of any value, so a separator of one byte is found inside it in some milliseconds.
 */
const SEPARATOR = '<<next field>>'
const LINE_END = '<<next record>>'

/**
 * What the console consumer of Kafka's own jars prints of a topic from its beginning: the proof that a record is one for
 * other readers too. It ends after `count` records, or when there are no more for `idleMs`: on a
 * busy machine it takes seconds until the first one comes, so who knows how many there are is given a minute. Takes some
 * 3 s.
 */
export async function readWithConsole(
  server: Server,
  topic: string,
  { count = 0, idleMs = count > 0 ? 60_000 : 3_000 }: { readonly count?: number; readonly idleMs?: number } = {},
): Promise<readonly ConsoleRecord[]> {
  const { program, classPath } = kafkaJars()
  const printed = ['print.partition', 'print.offset', 'print.headers', 'print.key', 'print.value']
  const options = [
    ...['--bootstrap-server', server.address, '--topic', topic, '--from-beginning', '--timeout-ms', String(idleMs)],
    ...(count > 0 ? ['--max-messages', String(count)] : []),
    ...printed.flatMap((name) => ['--property', `${name}=true`]),
    ...['--property', `key.separator=${SEPARATOR}`, '--property', `line.separator=${LINE_END}`],
  ]
  const jvm = ['-Xmx128m', '-XX:TieredStopAtLevel=1', '-Dorg.slf4j.simpleLogger.defaultLogLevel=off', '-cp', classPath]
  const tool = spawn(program, [...jvm, 'org.apache.kafka.tools.consumer.ConsoleConsumer', ...options], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let errors = ''
  tool.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    out += chunk
  })
  tool.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    errors += chunk
  })
  const code = await new Promise((resolve, reject) => tool.once('error', reject).once('close', resolve))
  if (code !== 0) throw new Error(`the console consumer ended with ${code}: ${errors}`)
  return out.split(LINE_END).filter(Boolean).map(consoleRecord)
}

function consoleRecord(line: string): ConsoleRecord {
  const [partition = '', offset = '', headers = '', key = '', ...value] = line.split(SEPARATOR)
  return {
    partition: Number(partition.slice('Partition:'.length)),
    offset: BigInt(offset.slice('Offset:'.length)),
    headers,
    key,
    value: value.join(SEPARATOR),
  }
}
