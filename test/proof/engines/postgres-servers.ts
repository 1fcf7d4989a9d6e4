/**
 * The Postgres that all rounds of a process share: a primary, and a second address at which its standby takes over. Its
 * commits are synced, as in production.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from '../../servers/free-port.ts'
import { type OwnPostgres, query, startPostgres } from '../../servers/postgres.ts'

/** The role of the processes of a round. It owns nothing, and administrators can end its sessions. */
export const PROOF_ROLE = 'proof'
/** Another program on the same server. */
export const OTHER_ROLE = 'other'

const SETTINGS = [
  'fsync=on',
  'full_page_writes=on',
  'max_connections=100',
  'superuser_reserved_connections=20',
  // A second would hide the deadlocks of a round in its noise.
  'deadlock_timeout=100ms',
  'max_wal_senders=4',
  // Recovery would otherwise open and sync each of a thousand files, which takes seconds.
  'recovery_init_sync_method=syncfs',
]

export type Replication = 'synchronous' | 'asynchronous'

/** How long a standby may take to follow before the proof itself has failed. */
const FOLLOW_MS = 30_000

const DEADLOCK = '40P01'
const DEADLOCK_TRIES = 10

export class PostgresServers {
  #primary: OwnPostgres
  /** Where the next primary will be. */
  #nextPort: number
  readonly #ports: readonly [number, number]
  readonly #leaving: Promise<void>[] = []

  private constructor(primary: OwnPostgres, nextPort: number) {
    this.#primary = primary
    this.#nextPort = nextPort
    this.#ports = [portOf(primary), nextPort]
  }

  static async start(): Promise<PostgresServers> {
    const primary = await startPostgres(SETTINGS)
    await query(primary.url, `create role ${PROOF_ROLE} login; create role ${OTHER_ROLE} login`)
    return new PostgresServers(primary, await freePort())
  }

  /** One of them is the primary. */
  get ports(): readonly [number, number] {
    return this.#ports
  }

  /** Until the next failover. */
  get primary(): OwnPostgres {
    return this.#primary
  }

  /**
   * A session of an administrator, which the server accepts even when it accepts no others. Where the server ends a deadlock
   * with the processes of a round, or with another fault, by undoing what `run` does, it runs again in a new session.
   */
  async session<Value>(run: (client: pg.Client) => Promise<Value>): Promise<Value> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#session(run)
      } catch (error) {
        if (!(error instanceof pg.DatabaseError) || error.code !== DEADLOCK || tries === DEADLOCK_TRIES) throw error
      }
    }
  }

  async #session<Value>(run: (client: pg.Client) => Promise<Value>): Promise<Value> {
    const client = new pg.Client({ connectionString: this.#primary.url })
    await client.connect()
    try {
      return await run(client)
    } finally {
      await client.end()
    }
  }

  /** Statements of an administrator, each by itself. */
  administer(...texts: readonly string[]): Promise<void> {
    return this.session(async (client) => {
      for (const text of texts) await client.query(text)
    })
  }

  /** A standby that has everything that the primary has, and follows it. */
  async addStandby(replication: Replication): Promise<OwnPostgres> {
    const standby = await startPostgres([...SETTINGS, `port=${this.#nextPort}`, `standby-of=${this.#primary.data}`])
    const isFollowing = `select 1 from pg_stat_replication where state = 'streaming' and application_name = 'standby'`
    await this.#until(isFollowing)
    if (replication === 'synchronous') {
      // Only now: every commit waits for it.
      await this.administer(`alter system set synchronous_standby_names = 'standby'`, 'select pg_reload_conf()')
      await this.#until(`${isFollowing} and sync_state = 'sync'`)
    }
    return standby
  }

  /** Ends the primary as if its machine were gone. The standby takes over at its own address. */
  async promote(standby: OwnPostgres): Promise<void> {
    const old = this.#primary
    await old.kill()
    await query(standby.url, 'select pg_promote()')
    // It would be copied to its own standby.
    await query(standby.url, 'alter system reset all')
    this.#primary = standby
    this.#nextPort = portOf(old)
    // Only its files are left, and removing them takes seconds.
    this.#leaving.push(old.stop())
  }

  async #until(text: string): Promise<void> {
    for (const untilMs = performance.now() + FOLLOW_MS; performance.now() < untilMs; await sleep(10)) {
      if ((await query(this.#primary.url, text)).length > 0) return
    }
    throw new Error(`the servers did not come to: ${text}`)
  }

  async stop(): Promise<void> {
    await Promise.all([this.#primary.stop(), ...this.#leaving])
  }
}

function portOf({ url }: OwnPostgres): number {
  return Number(new URL(url).port)
}
