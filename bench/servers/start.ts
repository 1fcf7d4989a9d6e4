/** One server for a whole run, started by it and gone with it. */
import { KAFKA_VERSION, startKafka } from '../../test/servers/kafka.ts'
import { startPostgres } from '../../test/servers/postgres.ts'
import { startRedis, withRedis } from '../../test/servers/redis.ts'
import { withClient } from './postgres.ts'

export interface Server {
  /** Of the database that is always there, or without a prefix or group. */
  readonly url: string
  readonly version: string
  stop(): Promise<void>
}

/** What everybody is measured with: a commit is on disk before it is acknowledged. */
const DURABLE: Readonly<Record<string, string>> = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' }
/** The rest is as Postgres has it. */
const SETTINGS = [...Object.entries(DURABLE).map(([name, value]) => `${name}=${value}`), 'shared_buffers=128MB']

export async function startDurablePostgres(): Promise<Server> {
  const { url, stop } = await startPostgres(SETTINGS)
  return { url, version: await checkedVersion(url), stop }
}

/** Figures of a server that was not set up as told would be worth nothing. */
function checkedVersion(url: string): Promise<string> {
  return withClient(url, async (client) => {
    const show = async (setting: string): Promise<string> => {
      const { rows } = await client.query('select current_setting($1) as value', [setting])
      return String(rows[0]?.value)
    }
    for (const [setting, wanted] of Object.entries(DURABLE)) {
      const value = await show(setting)
      if (value !== wanted) throw new Error(`${setting} is ${value} on the server of the run, and must be ${wanted}`)
    }
    return show('server_version')
  })
}

/** With an append-only file that is flushed every second: what BullMQ's own page on going to production recommends. */
export async function startLoggingRedis(): Promise<Server> {
  const { url, end } = await startRedis({ aof: 'everysec' })
  const version = await withRedis(url, async (redis) => {
    for (const [setting, wanted] of [
      ['appendonly', 'yes'],
      ['appendfsync', 'everysec'],
    ] as const) {
      const [, value] = (await redis.config('GET', setting)) as string[]
      if (value !== wanted) throw new Error(`${setting} is ${value} on the server of the run, and must be ${wanted}`)
    }
    return /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? 'unknown'
  })
  return { url, version, stop: end }
}

/** With more memory than a test's, and its compiler as it comes; the rest is as in the tests. */
export async function startKafkaBroker(): Promise<Server> {
  const { url, end } = await startKafka({}, ['-Xmx1g', '-XX:TieredStopAtLevel=4'])
  return { url, version: KAFKA_VERSION, stop: end }
}
