import pg from 'pg'
import type { Engine } from '../../src/engine/engine.ts'
import { connect, migrate } from '../../src/engines/postgres/module.ts'
import { TestClock } from '../../src/testing/test-clock.ts'
import { systemClock } from '../../src/time/clock.ts'
import { type LossyWire, lossyWire } from '../../test/servers/lossy-wire.ts'
import { dropSchema, type PostgresServer, postgresServer, query, schemaUrl } from '../../test/servers/postgres.ts'
import { callsAnswered } from '../../test/servers/postgres-calls.ts'
import type { Harness, OwnTransaction } from '../harness.ts'

/** Every view has connections of its own to one schema of its own. Time is virtual; the processes of the third level have real time. */
export async function postgresHarness(clock: TestClock = new TestClock()): Promise<Harness> {
  const server = await postgresServer()
  const { url, schema } = await freshSchema(server)
  const views: Engine[] = []
  const clients: pg.Client[] = []
  const wires: LossyWire[] = []
  const view = async (): Promise<Engine> => {
    const engine = await connect(`${url}&pool=4`, { clock, migrate: false })
    views.push(engine)
    return engine
  }
  const engine = await view()
  return {
    engine,
    clock,
    url,
    other: view,
    async lossyView() {
      const wire = await lossyWire(url, server)
      wires.push(wire)
      const lossy = await connect(`${wire.url}&pool=4`, { clock, migrate: false })
      views.push(lossy)
      return { engine: lossy, loseNextAnswer: wire.loseNextAnswer }
    },
    advance: (ms) => advance(clock, ms),
    transaction: async () => {
      const client = new pg.Client({ connectionString: server.url })
      await client.connect()
      clients.push(client)
      return beginOn(client, schema)
    },
    destroy: async () => {
      for (const opened of views) await opened.close()
      for (const wire of wires) wire.close()
      for (const client of clients) await client.end()
      await recycle(server, { url, schema })
    },
  }
}

interface Schema {
  readonly url: string
  readonly schema: string
}

/** Migrating takes longer than most cases, so a schema of our own server is emptied and used again. */
const free: Schema[] = []

async function freshSchema(server: PostgresServer): Promise<Schema> {
  const used = free.pop()
  if (used !== undefined) return used
  const schema = schemaUrl(server)
  await migrate(schema.url, { clock: systemClock, migrate: true })
  return schema
}

async function recycle(server: PostgresServer, used: Schema): Promise<void> {
  if (server.restart === null) return dropSchema(server.url, used.schema)
  const schema = pg.escapeIdentifier(used.schema)
  const rows = await query<{ name: string }>(
    server.url,
    `select tablename as name from pg_tables where schemaname = $1 and tablename <> 'millrace_schema'`,
    [used.schema],
  )
  const emptied = rows.map(({ name }) => `delete from ${schema}.${pg.escapeIdentifier(name)};`)
  // A replica runs no triggers: the audit lets nobody delete.
  await query(server.url, `set session_replication_role = replica; ${emptied.join(' ')}`)
  free.push(used)
}

/** What the server is asked when a timer fires takes real time, so virtual time must not run ahead of a server that is busy. */
async function advance(clock: TestClock, ms: number): Promise<void> {
  const step = Math.max(1, Math.min(ms, ms / 10))
  for (let left = ms; left > 0; left -= step) {
    await clock.advance(Math.min(step, left))
    await new Promise((resolve) => setTimeout(resolve, 1))
    await callsAnswered()
  }
}

async function beginOn(client: pg.Client, schema: string): Promise<OwnTransaction> {
  const table = `${pg.escapeIdentifier(schema)}.note`
  await client.query(`create table if not exists ${table} (text text not null)`)
  await client.query('begin')
  return {
    within: client,
    note: async (text) => void (await client.query(`insert into ${table} (text) values ($1)`, [text])),
    notes: async () => (await client.query(`select text from ${table}`)).rows.map((row) => String(row.text)),
    commit: async () => void (await client.query('commit')),
    rollback: async () => void (await client.query('rollback')),
  }
}
