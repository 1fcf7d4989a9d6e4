/** pg-boss with what its documentation offers for speed: batches, bursts and LISTEN/NOTIFY, all of which are off by default. */
import { PgBoss } from 'pg-boss'
import type { Claimed, Contender, Levels, Mixing, Place, Working, WorkRequest } from '../contender.ts'
import type { MixedPayload } from '../mixture.ts'
import { FILLED_PAYLOAD, type Payload } from '../payload.ts'
import { CONNECTIONS, withClient } from '../servers/postgres.ts'

const QUEUE = 'bench'
/** The shortest it allows. */
const POLL_SECONDS = 0.5
const PRIORITIES = { first: 10, usual: 0, last: -10 } as const

const REMAINING = `select count(*) as count from pgboss.job
  where name = '${QUEUE}' and state in ('created', 'retry', 'active') and start_after <= now()`
const COUNTS = `select
    count(*) filter (where state < 'active' and start_after <= now()) as waiting,
    count(*) filter (where state < 'active' and start_after > now()) as scheduled,
    count(*) filter (where state = 'completed') as finished
  from pgboss.job where name = '${QUEUE}'`
/** Behind the last index that was ever filled in: those that wait are used up and replaced. */
const NEXT = `select coalesce(max((data ->> 'n')::bigint) + 1, 0) as next from pgboss.job
  where name = '${QUEUE}' and (data ->> 'n')::bigint < 1000000000`
/** $1 of the first to be added, $2 behind the last; $4 is when the first is due, each further one a millisecond later. */
const FILL = `
  insert into pgboss.job (name, data, state, priority, start_after, completed_on)
  select '${QUEUE}', (${FILLED_PAYLOAD})::jsonb, $3::pgboss.job_state, $5::int,
    now() + $4::interval + n::int * interval '1 millisecond', case when $3 = 'completed' then now() end
  from (select g::text as n from generate_series($1::int, $2::int - 1) as g) as numbers`

const settingsOf = (concurrency: number) => ({
  batchSize: concurrency,
  burstWhenBatchFull: true,
  pollingIntervalSeconds: POLL_SECONDS,
  notifyPollingIntervalSeconds: POLL_SECONDS,
})

class PgBossContender implements Contender {
  readonly bulkSize = 1_000
  readonly claiming = { fill: (levels: Levels) => this.#fill(levels), claim: (max: number) => this.#claim(max) }
  /** All types in one queue: a queue of its own for each would be fetched from twice a second, and one job at a time. */
  readonly mixing: Mixing = {
    lacks: new Set(),
    enqueue: async ({ urgency, delayMs, payload }) => {
      const startAfter = delayMs === 0 ? {} : { startAfter: new Date(Date.now() + delayMs) }
      await this.#opened.send(QUEUE, payload, { priority: PRIORITIES[urgency], retryDelay: 1, ...startAfter })
    },
    work: async (request) => {
      const boss = this.#opened
      this.#onError = request.onError
      const settings = { ...settingsOf(request.concurrency), perJobResults: true } as const
      await boss.work<MixedPayload>(QUEUE, settings, (jobs) =>
        Promise.all(
          jobs.map(async ({ id, data }) => {
            const failed = await request.onJob(data).then(
              () => false,
              () => true,
            )
            return { id, status: failed ? 'failed' : 'completed' } as const
          }),
        ),
      )
      return { stop: () => boss.offWork(QUEUE, { wait: true }) }
    },
  }
  #url = ''
  #boss: PgBoss | null = null
  #onError: (error: unknown) => void = () => {}

  async setup({ url }: Place): Promise<void> {
    if (url === null) throw new Error('pg-boss needs a server')
    this.#url = url
    this.#boss = new PgBoss({ connectionString: url, max: CONNECTIONS, useListenNotify: true })
    this.#boss.on('error', (error) => this.#onError(error))
    await this.#boss.start()
    await this.#boss.createQueue(QUEUE, { notify: true })
  }

  async enqueueOne(payload: Payload): Promise<void> {
    await this.#opened.send(QUEUE, payload)
  }

  async enqueueBulk(payloads: readonly Payload[]): Promise<void> {
    await this.#opened.insert(
      QUEUE,
      payloads.map((data) => ({ data })),
    )
  }

  async work(request: WorkRequest): Promise<Working> {
    const boss = this.#opened
    this.#onError = request.onError
    await boss.work<Payload>(QUEUE, settingsOf(request.concurrency), async (jobs) => {
      await Promise.all(jobs.map((job) => request.onJob(job.data)))
    })
    return { stop: () => boss.offWork(QUEUE, { wait: true }) }
  }

  async remaining(): Promise<number> {
    const { rows } = await this.#opened.getDb().executeSql(REMAINING)
    return Number(rows[0]?.count)
  }

  async teardown(): Promise<void> {
    await this.#opened.stop()
  }

  async #claim(max: number): Promise<Claimed> {
    const boss = this.#opened
    const jobs = await boss.fetch<Payload>(QUEUE, { batchSize: max })
    return {
      payloads: jobs.map((job) => job.data),
      complete: async () => {
        await boss.complete(
          QUEUE,
          jobs.map((job) => job.id),
        )
      },
    }
  }

  async #fill(levels: Levels): Promise<void> {
    await withClient(this.#url, async (client) => {
      const { rows } = await client.query(COUNTS)
      const there = (level: keyof Levels): number => Number(rows[0]?.[level])
      const next = Number((await client.query(NEXT)).rows[0]?.next)
      const add = (level: keyof Levels, state: string, due: string, priority: number) => {
        const first = level === 'waiting' ? next : there(level)
        return client.query(FILL, [first, first + Math.max(0, levels[level] - there(level)), state, due, priority])
      }
      await add('finished', 'completed', '-2 days', 0)
      await add('waiting', 'created', '-2 days', 0)
      // A higher priority than those that wait: a claim that walks its index in order would meet them first.
      await add('scheduled', 'created', '2 days', 1)
      await client.query('vacuum analyze pgboss.job')
    })
  }

  get #opened(): PgBoss {
    if (this.#boss === null) throw new Error('setup comes first')
    return this.#boss
  }
}

export function create(): Contender {
  return new PgBossContender()
}
