import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { SHARED_ADDRESS } from './kafka-broker.ts'

export { KAFKA_VERSION, MISSING } from './kafka-broker.ts'
export * from './kafka-topics.ts'

export interface KafkaServer {
  /** `host:port`, as a client takes it. */
  readonly address: string
  /** Such as `kafka://127.0.0.1:40123`. */
  readonly url: string
}

/** A broker that one test has for itself, and may do anything to. */
export interface OwnKafka extends KafkaServer {
  readonly port: number
  /** Those that settings name as {port0} to {port3}. */
  readonly morePorts: readonly number[]
  /** Ends it in an orderly way. The port then refuses connections. */
  stop(): Promise<void>
  /** Ends it without a goodbye. */
  kill(): Promise<void>
  /** Starts it again on the same port, with the data it had written, or as an empty one. */
  start(data?: 'kept' | 'gone'): Promise<void>
  /** Its connections stay open and nobody answers, as when a machine hangs, until `thaw`. */
  freeze(): Promise<void>
  thaw(): Promise<void>
  /** Ends it for good and removes its data. A process that ends without it does the same. */
  end(): Promise<void>
}

const KEEPER = fileURLToPath(new URL('./kafka-keeper.ts', import.meta.url))
const SHARED = fileURLToPath(new URL('./kafka-shared.ts', import.meta.url))

let shared: Promise<KafkaServer> | null = null

/**
 * The broker whose address (`host:port`) is in MILLRACE_TEST_KAFKA, or one that all test processes share: the first call
 * starts it, and it ends when the test run does. Others use it too: take topics and groups of your own (`freshTopic`,
 * `freshName`), and `startKafka` for anything that disturbs a neighbour. With MILLRACE_TEST_SECURE=1 it is one for
 * this process alone, whose URL asks for TLS and SCRAM and whose worker has no more rights than it needs.
 */
export function kafkaServer(): Promise<KafkaServer> {
  const given = process.env.MILLRACE_TEST_KAFKA
  if (process.env.MILLRACE_TEST_SECURE === '1') shared ??= joinSecure()
  shared ??= given === undefined || given === '' ? joinShared() : Promise.resolve(serverAt(given))
  return shared
}

function serverAt(given: string): KafkaServer {
  const address = given.replace(/^kafka:\/\//, '')
  return { address, url: `kafka://${address}` }
}

async function joinSecure(): Promise<KafkaServer> {
  const { startSecureKafka, secureUrl } = await import('./kafka-secure.ts')
  const broker = await startSecureKafka()
  return { address: broker.address, url: secureUrl(broker) }
}

/** The URL with further parameters, such as `group=payouts&session=6000`. */
export function withParameters({ url }: Pick<KafkaServer, 'url'>, parameters: string): string {
  return `${url}${url.includes('?') ? '&' : '?'}${parameters}`
}

async function joinShared(): Promise<KafkaServer> {
  for (let tries = 1; ; tries += 1) {
    const answer = await askShared()
    if (answer.startsWith('ready ')) return serverAt(`127.0.0.1:${answer.slice('ready '.length)}`)
    if (answer.startsWith('failed ')) throw new Error(answer.slice('failed '.length))
    // Nobody listens yet, or the last one has just gone.
    if (tries === 1_200) throw new Error('the Kafka that the tests share did not start')
    if (tries % 40 === 1) {
      if (answer === 'ECONNREFUSED' && !SHARED_ADDRESS.startsWith('\0')) rmSync(SHARED_ADDRESS, { force: true })
      // In a session of its own: it must outlive this process, and a Ctrl-C that is meant for the tests.
      spawn(process.execPath, [SHARED], { stdio: 'ignore', detached: true }).unref()
    }
    await delay(50)
  }
}

/** The line it answers, or the code of the error. The connection stays, and does not keep this process alive. */
function askShared(): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(SHARED_ADDRESS, () => {
      if (process.env.NODE_TEST_CONTEXT !== undefined) socket.write(`runner ${process.ppid}\n`)
    })
    socket.on('error', (error) => resolve('code' in error ? String(error.code) : error.message))
    socket.on('close', () => resolve('closed'))
    // It tells the errors of its input once more, and they are heard above.
    const lines = createInterface({ input: socket }).on('error', () => {})
    lines.once('line', (line) => {
      socket.unref()
      resolve(line)
    })
  })
}

/**
 * A broker of its own, up in about 3 s, for tests that stop it or need other settings, as in
 * server.properties: `{ 'message.max.bytes': '1000' }`. Flags of the JVM go after those that every test has.
 */
export async function startKafka(
  settings: Readonly<Record<string, string>> = {},
  jvm: readonly string[] = [],
): Promise<OwnKafka> {
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const keeper = spawn(process.execPath, [KEEPER, ...jvm, ...lines], { stdio: ['pipe', 'pipe', 'inherit'] })
  const answers = createInterface({ input: keeper.stdout })
  const answer = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const fail = (): void => reject(new Error('the Kafka of the tests did not start'))
      keeper.once('exit', fail)
      answers.once('line', (line) => {
        keeper.removeListener('exit', fail)
        if (line.startsWith('ready ')) resolve(line.slice('ready '.length))
        else reject(new Error(line))
      })
    })
  const [port = 0, ...morePorts] = (await answer()).split(' ').map(Number)
  // It must not keep the tests alive; it goes when they do.
  keeper.unref()
  for (const stream of [keeper.stdin, keeper.stdout])
    if ('unref' in stream && typeof stream.unref === 'function') stream.unref()
  const tell = async (command: string): Promise<void> => {
    const alive = setInterval(() => {}, 1_000)
    const answered = answer()
    keeper.stdin.write(`${command}\n`)
    await answered.finally(() => clearInterval(alive))
  }
  return {
    ...serverAt(`127.0.0.1:${port}`),
    port,
    morePorts,
    stop: () => tell('stop'),
    kill: () => tell('kill'),
    async start(data = 'kept') {
      if (data === 'gone') await tell('wipe')
      await tell('start')
    },
    freeze: () => tell('freeze'),
    thaw: () => tell('thaw'),
    async end() {
      if (keeper.exitCode !== null) return
      keeper.ref()
      const gone = new Promise((resolve) => keeper.once('exit', resolve))
      keeper.stdin.end()
      await gone
    },
  }
}
