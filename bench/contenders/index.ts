import type { ContenderEntry } from '../contender.ts'

const at = (file: string): string => new URL(file, import.meta.url).href

const NO_OTHER_PROCESS = 'lives in one process'
const NO_WORKER = 'is a loop over statements: it has no worker, no wake-up and no leases to keep'
const NO_CLAIM = 'lets nobody claim but its own worker'
const NO_FILL = 'has no documented table that could be filled with millions of jobs from outside'
const JOB_BY_JOB = 'finishes each job by itself and would take minutes for 120 thousand'

const AS_FULL = 'is judged with FULL here'
const AT_STANDARD_SIZE = 'is compared at the standard size'
const NO_LISTS = 'has no admin API to ask'
const DRAINS_SLOWLY = 'drains job by job, a thousand or two in a second: see the drain of 20 thousand'
const FEWER_JOBS = { 'drain-20k': 'is given 5 thousand jobs: it drains them one by one, a thousand or two in a second' }

/** Everything that can be measured, in the order of the tables. Another engine or peer is one more entry here. */
export const CONTENDERS: readonly ContenderEntry[] = [
  {
    name: 'millrace-full',
    title: 'Millrace, SQLite FULL',
    family: 'sqlite',
    notes: 'synchronous=FULL, the default: an acknowledged job survives a power cut.',
    storage: 'millrace-sqlite',
    excused: {},
    module: at('millrace.ts'),
  },
  {
    name: 'millrace-normal',
    title: 'Millrace, SQLite NORMAL',
    family: 'sqlite',
    notes:
      'synchronous=NORMAL: an acknowledged job survives a crash of the process, a power cut may lose the last ones.',
    storage: 'millrace-sqlite',
    excused: {
      start: AS_FULL,
      millions: AS_FULL,
      work: AS_FULL,
      'processes-20k': AS_FULL,
    },
    module: at('millrace.ts'),
  },
  {
    name: 'plainjob',
    title: 'plainjob, SQLite NORMAL',
    family: 'sqlite',
    notes:
      'plainjob on better-sqlite3 with its own settings: synchronous=NORMAL, a poll every second, one job at a time. A started job that is never finished is taken up again after 30 minutes.',
    storage: 'plainjob',
    excused: {
      retention: 'removes what is old in one statement, whatever its size',
      millions: NO_LISTS,
      'processes-20k': AT_STANDARD_SIZE,
    },
    caveats: {
      start: 'has no command line',
      work: 'has neither priorities nor retries, so none of its jobs is urgent or fails',
    },
    module: at('plainjob.ts'),
  },
  {
    name: 'bare-store',
    title: 'bare SQLite, FULL',
    family: 'sqlite',
    notes:
      'The ceiling: the canonical table and indexes, synchronous=FULL, one transaction that completes a batch of 100 and claims the next. No retries, fences, events or timeouts.',
    storage: 'bare-store',
    excused: {
      pickup: NO_WORKER,
      idle: NO_WORKER,
      memory: NO_WORKER,
      claim: NO_WORKER,
      retention: NO_WORKER,
      start: 'is no package',
      'processes-20k': AT_STANDARD_SIZE,
      millions: NO_LISTS,
      work: NO_WORKER,
    },
    module: at('bare-store.ts'),
  },
  {
    name: 'millrace-memory',
    title: 'Millrace, memory',
    family: 'sqlite',
    notes: 'Nothing survives the process: what the core itself costs.',
    storage: 'millrace-memory',
    excused: {
      pickup: NO_OTHER_PROCESS,
      retention: NO_OTHER_PROCESS,
      processes: NO_OTHER_PROCESS,
      'processes-20k': NO_OTHER_PROCESS,
      claim: 'has no store to fill from outside',
      memory: 'has no store to fill from outside',
      work: NO_OTHER_PROCESS,
      millions: 'has no store to fill from outside',
      start: 'has no store that a program could leave a job in',
    },
    module: at('millrace.ts'),
  },
  {
    name: 'millrace-postgres',
    title: 'Millrace, Postgres',
    family: 'postgres',
    notes: 'As its README has it. Finished jobs stay, with their results.',
    storage: 'millrace-postgres',
    excused: {},
    module: at('millrace.ts'),
  },
  {
    name: 'graphile-worker',
    title: 'graphile-worker',
    family: 'postgres',
    notes:
      'With its own settings: each of the 50 jobs at a time is fetched and completed by itself. A finished job is deleted. A started job that is never finished is taken up again after 4 hours.',
    storage: 'graphile-worker',
    excused: {
      drain: DRAINS_SLOWLY,
      horizon: JOB_BY_JOB,
      claim: NO_CLAIM,
      batch: NO_CLAIM,
      memory: NO_FILL,
      millions: NO_LISTS,
    },
    caveats: FEWER_JOBS,
    module: at('graphile-worker.ts'),
  },
  {
    name: 'graphile-worker-tuned',
    title: 'graphile-worker, local queue',
    family: 'postgres',
    notes:
      'With the settings of its own page on performance: a local queue of 500, and completion in batches. Up to 500 jobs are then locked by one process, which may be gone; they are taken up again after 4 hours.',
    storage: 'graphile-worker',
    excused: { claim: NO_CLAIM, batch: NO_CLAIM, memory: NO_FILL, millions: NO_LISTS },
    module: at('graphile-worker.ts'),
  },
  {
    name: 'pg-boss',
    title: 'pg-boss',
    family: 'postgres',
    notes:
      'Batches of 50 with bursts while they are full, LISTEN/NOTIFY, and a poll every half second, the shortest it allows. None of it is its default, which is one job every 2 seconds. Finished jobs stay.',
    storage: 'pg-boss',
    excused: { millions: NO_LISTS },
    caveats: { work: 'has all types in one queue, because it fetches from each queue by itself and twice a second' },
    module: at('pg-boss.ts'),
  },
  {
    name: 'bullmq-postgres',
    title: 'BullMQ, Postgres backend',
    family: 'postgres',
    notes:
      'The Postgres backend of BullMQ 6 with its own settings; the queue and the worker have a pool each. Finished jobs stay.',
    storage: 'bullmq-postgres',
    excused: {
      drain: DRAINS_SLOWLY,
      horizon: JOB_BY_JOB,
      claim: NO_FILL,
      batch: NO_FILL,
      memory: NO_FILL,
      millions: NO_LISTS,
    },
    caveats: FEWER_JOBS,
    module: at('bullmq-postgres.ts'),
  },
  {
    name: 'bare-postgres',
    title: 'bare Postgres',
    family: 'postgres',
    notes:
      'The ceiling: the canonical table and indexes, and two loops of one statement that completes a batch of 500 and claims the next with FOR UPDATE SKIP LOCKED. No retries, fences, events or timeouts.',
    storage: 'bare-postgres',
    excused: {
      pickup: NO_WORKER,
      idle: NO_WORKER,
      memory: NO_WORKER,
      claim: NO_WORKER,
      batch: NO_WORKER,
      millions: NO_LISTS,
      work: NO_WORKER,
    },
    module: at('bare-postgres.ts'),
  },
  {
    name: 'millrace-redis',
    title: 'Millrace, Redis',
    family: 'redis',
    notes: "As its README has it, on BullMQ's own keys. Finished jobs stay, with their results.",
    storage: 'bullmq',
    excused: {},
    module: at('millrace.ts'),
  },
  {
    name: 'bullmq',
    title: 'BullMQ',
    family: 'redis',
    notes:
      "BullMQ's own worker and queue with their own settings: each job that ends brings the next one. Finished jobs stay. (ioredis's auto-pipelining was tried with it, and drained a quarter less.)",
    storage: 'bullmq',
    excused: {},
    module: at('bullmq.ts'),
  },
  {
    name: 'bare-redis',
    title: 'bare Redis',
    family: 'redis',
    notes:
      'The ceiling: a hash for each job, a list of those that wait, and two loops of one script that completes a batch of 500 and claims the next. No retries, events, delays, priorities or timeouts.',
    storage: 'bare-redis',
    excused: { pickup: NO_WORKER, idle: NO_WORKER, work: NO_WORKER },
    module: at('bare-redis.ts'),
  },
  {
    name: 'millrace-kafka',
    title: 'Millrace, Kafka',
    family: 'kafka',
    notes:
      'As its README has it: keys in order and the rest of a partition in parallel, fenced, with retries and dead letters; a commit every 100 ms.',
    storage: 'kafka',
    excused: {},
    module: at('millrace.ts'),
  },
  {
    name: 'kafka-stream',
    title: 'platformatic/kafka, stream',
    family: 'kafka',
    notes:
      "The stream of the client that Millrace uses the lower half of, with its events and a commit every 100 ms. It commits what it has handed out, not what was handled, and one handler's wait holds all.",
    storage: 'kafka',
    excused: {},
    module: at('kafka-stream.ts'),
  },
  {
    name: 'kafkajs',
    title: 'kafkajs, eachMessage',
    family: 'kafka',
    notes: '`eachMessage` with its own settings, all six partitions at a time: a commit after each batch.',
    storage: 'kafka',
    excused: {},
    module: at('kafkajs.ts'),
  },
]
