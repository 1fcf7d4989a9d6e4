import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { FamilyName } from './contender.ts'
import { PARTITIONS } from './servers/kafka.ts'
import { CONNECTIONS } from './servers/postgres.ts'
import { type Server, startDurablePostgres, startKafkaBroker, startLoggingRedis } from './servers/start.ts'
import { type Sizes, STANDARD, STANDARD_OF_LOGS, STANDARD_OF_SERVERS } from './sizes.ts'

/** One comparison: what a run of it is, and what a reader of its figures must know. */
export interface Family {
  readonly name: FamilyName
  readonly title: string
  /** The contenders of a default run. */
  readonly contenders: readonly string[]
  readonly sizes: Sizes
  /** For the docs: what holds for every contender, as a sentence each. */
  readonly terms: readonly string[]
  /** For the docs: how long a run of all of it takes. */
  readonly duration: string
  /** Present where the store is a server, which is then started for each run. */
  startServer?(): Promise<Server>
  /** What was measured, by name; `server` is that of the run. */
  versions(server: Server | null): Readonly<Record<string, string>>
}

const SQLITE: Family = {
  name: 'sqlite',
  title: 'SQLite',
  contenders: ['millrace-full', 'millrace-normal', 'plainjob', 'bare-store'],
  sizes: STANDARD,
  terms: [],
  duration: 'about six minutes',
  versions: () => ({
    'SQLite (node:sqlite)': sqliteVersion(),
    ...packageVersions('better-sqlite3', 'plainjob'),
  }),
}

const POSTGRES: Family = {
  name: 'postgres',
  title: 'Postgres',
  contenders: [
    'millrace-postgres',
    'graphile-worker',
    'graphile-worker-tuned',
    'pg-boss',
    'bullmq-postgres',
    'bare-postgres',
  ],
  sizes: STANDARD_OF_SERVERS,
  terms: [
    'One Postgres, started for the run on the same machine, with its own settings (fsync, synchronous_commit and full_page_writes on: a commit is on disk before anybody hears of it), serves everybody; each measurement has an empty database of its own and begins after a checkpoint.',
    `Every pool may have ${CONNECTIONS} connections; a connection that only listens is not counted.`,
  ],
  duration: 'about twelve minutes',
  startServer: startDurablePostgres,
  versions: (server) => ({
    Postgres: server?.version ?? 'unknown',
    ...packageVersions('pg', 'graphile-worker', 'pg-boss', 'bullmq'),
  }),
}

const REDIS: Family = {
  name: 'redis',
  title: 'Redis',
  contenders: ['millrace-redis', 'bullmq', 'bare-redis'],
  sizes: STANDARD_OF_SERVERS,
  terms: [
    'One Redis, started for the run on the same machine, with an append-only file that is flushed to the disk every second (a power cut may lose what was acknowledged in the last one), serves everybody; each measurement has a prefix of its own and begins after that file was written anew.',
  ],
  duration: 'about five minutes',
  startServer: startLoggingRedis,
  versions: (server) => ({ Redis: server?.version ?? 'unknown', ...packageVersions('bullmq', 'ioredis') }),
}

const KAFKA: Family = {
  name: 'kafka',
  title: 'Kafka',
  contenders: ['millrace-kafka', 'kafka-stream', 'kafkajs'],
  sizes: STANDARD_OF_LOGS,
  terms: [
    `One broker (KRaft), started for the run on the same machine with ${PARTITIONS} partitions for each topic and acks=all, serves everybody; a log is flushed as Kafka does, by the system. Each measurement has a topic and a group of its own.`,
    'In the drain each reads the jobs that it wrote itself: those of Millrace have headers, the others have none.',
    'The mixture of real work is not measured here: a log has neither priorities nor delays, and both peers handle the records of a partition one after another, so that they would be measured waiting.',
  ],
  duration: 'about eight minutes',
  startServer: startKafkaBroker,
  versions: (server) => ({
    Kafka: server?.version ?? 'unknown',
    ...packageVersions('@platformatic/kafka', 'kafkajs'),
  }),
}

const BY_NAME: Readonly<Record<FamilyName, Family>> = {
  sqlite: SQLITE,
  postgres: POSTGRES,
  redis: REDIS,
  kafka: KAFKA,
}

/** In the order of the docs. */
export const FAMILIES: readonly Family[] = Object.values(BY_NAME)

export function findFamily(name: FamilyName): Family {
  return BY_NAME[name]
}

function sqliteVersion(): string {
  const db = new DatabaseSync(':memory:')
  const version = String(db.prepare('select sqlite_version() as version').get()?.version)
  db.close()
  return version
}

/** Read as files: not every package lets its manifest be imported. */
function packageVersions(...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => {
      const manifest = new URL(`../node_modules/${name}/package.json`, import.meta.url)
      const { version }: { readonly version: string } = JSON.parse(readFileSync(manifest, 'utf8'))
      return [name, version]
    }),
  )
}
