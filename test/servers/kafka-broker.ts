/** One Kafka broker (KRaft, one node) as a process: its jars, its storage, its start and its end. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { findProgram } from './apt.ts'
import { freePort } from './free-port.ts'

export const KAFKA_VERSION = '4.1.1'

export const MISSING = `Kafka needs java and mvn; run 'apt-get install default-jre-headless maven' (its jars are fetched once), or set MILLRACE_TEST_KAFKA to the address of a broker`

/** The console tools are in a jar of their own; what that one needs beyond the broker's jars is for other tools. */
const POM = `<project><modelVersion>4.0.0</modelVersion><groupId>millrace</groupId><artifactId>kafka</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${KAFKA_VERSION}</version></dependency>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>${KAFKA_VERSION}</version>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
`

/** Test files run at the same time: the first one fetches, the others wait. A folder with the last name is whole. */
const FETCH = `test -d "$2" || { "$0" -q -B -f "$1/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$1/libs" && mv "$1/libs" "$2"; }`

/** Survives between runs, and an `npm ci` too. */
const CACHE = join(tmpdir(), `millrace-kafka-${KAFKA_VERSION}`)
const JARS = join(CACHE, 'libs')
const FORMATTED = join(CACHE, 'formatted')

/** Linux has addresses that vanish with their process; elsewhere it is a file, which may be left over. */
export const SHARED_ADDRESS =
  process.platform === 'linux' ? `\0millrace-kafka-${process.getuid?.()}` : join(tmpdir(), 'millrace-kafka.sock')

export interface Java {
  readonly program: string
  readonly classPath: string
}

/** Kafka's own jars, fetched by Maven on a machine that has none yet. */
export function kafkaJars(): Java {
  const program = findProgram('java', 'default-jre-headless')
  if (program === null) throw new Error(MISSING)
  if (!existsSync(JARS)) {
    const maven = findProgram('mvn', 'maven')
    if (maven === null) throw new Error(MISSING)
    mkdirSync(CACHE, { recursive: true })
    const folder = mkdtempSync(join(CACHE, 'fetch-'))
    writeFileSync(join(folder, 'pom.xml'), POM)
    try {
      execFileSync('flock', [join(CACHE, 'lock'), '/bin/sh', '-c', FETCH, maven, folder, JARS], {
        stdio: ['ignore', 'ignore', 'pipe'],
        timeout: 400_000,
      })
    } catch (error) {
      throw new Error(`Maven could not fetch the jars of Kafka ${KAFKA_VERSION}: ${String(error)}; ${MISSING}`)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  return { program, classPath: join(JARS, '*') }
}

export interface BrokerPlace {
  readonly java: Java
  readonly folder: string
  /** Of `server.properties`, such as `message.max.bytes=1000`; they go before those of the tests. */
  readonly settings: readonly string[]
  /** Further flags of the JVM, such as `-Xmx1g`. */
  readonly jvm?: readonly string[]
  readonly port: number
  readonly controllerPort: number
  /** Of listeners that the settings add. */
  readonly morePorts: readonly number[]
}

/** How many ports settings may name beside the two of every broker. */
const MORE_PORTS = 4

/** A single node on loopback, without the waits that make sense only where brokers and members come one by one. */
function properties({ folder, port, controllerPort, morePorts, settings }: BrokerPlace): string {
  // Ports are found here, so settings with listeners of their own name them: {port}, {controllerPort}, {port0} to {port3}.
  const ports = new Map<string, number>([
    ...morePorts.map((more, index) => [`{port${index}}`, more] as const),
    ['{port}', port],
    ['{controllerPort}', controllerPort],
  ])
  const withPorts = (line: string): string => line.replace(/\{\w+\}/g, (name) => String(ports.get(name) ?? name))
  const lines = [
    'process.roles=broker,controller',
    'node.id=1',
    `controller.quorum.voters=1@127.0.0.1:${controllerPort}`,
    `listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    `advertised.listeners=PLAINTEXT://127.0.0.1:${port}`,
    'controller.listener.names=CONTROLLER',
    'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    `log.dirs=${join(folder, 'data')}`,
    'auto.create.topics.enable=false',
    'offsets.topic.replication.factor=1',
    'offsets.topic.num.partitions=4',
    'transaction.state.log.replication.factor=1',
    'transaction.state.log.min.isr=1',
    'transaction.state.log.num.partitions=4',
    'share.coordinator.state.topic.replication.factor=1',
    'share.coordinator.state.topic.min.isr=1',
    'group.initial.rebalance.delay.ms=0',
    'group.min.session.timeout.ms=1000',
    'controlled.shutdown.enable=false',
    'broker.session.timeout.ms=2000',
    'broker.heartbeat.interval.ms=250',
    'controller.quorum.election.timeout.ms=250',
    'controller.quorum.fetch.timeout.ms=500',
    'log.index.size.max.bytes=1048576',
    'log.cleaner.dedupe.buffer.size=16777216',
    'num.network.threads=2',
    'num.io.threads=4',
    ...settings.map(withPorts),
  ]
  return `${lines.join('\n')}\n`
}

/** Formatting takes a JVM of its own; an empty storage is the same for every broker, so it is formatted once and copied. */
export function emptyStorage(place: BrokerPlace): void {
  const data = join(place.folder, 'data')
  rmSync(data, { recursive: true, force: true })
  if (!existsSync(FORMATTED)) {
    const file = join(place.folder, 'format.properties')
    writeFileSync(file, properties({ ...place, settings: [] }))
    const format = ['format', '-t', 'bWlsbHJhY2UtdGVzdHMtMQ', '-c', file]
    execFileSync(place.java.program, ['-cp', place.java.classPath, 'kafka.tools.StorageTool', ...format], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const copy = mkdtempSync(join(CACHE, 'format-'))
    cpSync(data, copy, { recursive: true })
    rmSync(data, { recursive: true, force: true })
    try {
      renameSync(copy, FORMATTED)
    } catch {
      // Another process was quicker; its copy is as good.
      rmSync(copy, { recursive: true, force: true })
    }
  }
  cpSync(FORMATTED, data, { recursive: true })
  const id = place.settings.find((line) => line.startsWith('node.id='))
  if (id !== undefined) renumber(join(data, 'meta.properties'), id)
}

/** For one of several brokers: each has a number and a folder of its own. */
function renumber(file: string, id: string): void {
  const directory = `directory.id=${randomBytes(16).toString('base64url').replace(/^-/, 'A')}`
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace(/^node\.id=.*$/m, id).replace(/^directory\.id=.*$/m, directory))
}

const LOGGING = [
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info',
]

/** Few threads and a quick start matter more here than the speed after an hour. */
const JVM = ['-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Xshare:auto', '-Djava.awt.headless=true']

export async function startBroker(place: BrokerPlace): Promise<ChildProcess> {
  const file = join(place.folder, 'server.properties')
  writeFileSync(file, properties(place))
  const broker = spawn(
    place.java.program,
    [...JVM, ...(place.jvm ?? []), ...LOGGING, '-cp', place.java.classPath, 'kafka.Kafka', file],
    {
      cwd: place.folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const said: string[] = []
  await new Promise<void>((resolve, reject) => {
    broker.once('error', reject)
    broker.once('exit', (code) => reject(new Error(`the broker ended with ${code}: ${said.join('; ')}`)))
    const hear = (line: string): void => {
      said.push(line)
      if (said.length > 20) said.shift()
      if (line.includes('Kafka Server started')) resolve()
    }
    for (const input of [broker.stdout, broker.stderr]) createInterface({ input }).on('line', hear)
  })
  return broker
}

export async function endBroker(broker: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (broker.exitCode !== null || broker.signalCode !== null) return
  const ended = new Promise((resolve) => broker.once('exit', resolve))
  broker.kill(signal)
  await ended
}

/** Between the probe and the start somebody else may have taken a port. */
export async function startOnFreePorts(
  folder: string,
  { settings, jvm }: Pick<BrokerPlace, 'settings' | 'jvm'>,
): Promise<{ readonly place: BrokerPlace; readonly broker: ChildProcess }> {
  const java = kafkaJars()
  for (let tries = 1; ; tries += 1) {
    const place: BrokerPlace = {
      java,
      folder,
      settings,
      jvm: jvm ?? [],
      port: await freePort(),
      controllerPort: await freePort(),
      morePorts: await Promise.all(Array.from({ length: MORE_PORTS }, freePort)),
    }
    emptyStorage(place)
    try {
      return { place, broker: await startBroker(place) }
    } catch (error) {
      if (tries === 3 || !String(error).includes('Address already in use')) throw error
    }
  }
}
