/** Databases on the server of a run: each measurement has its own, and it costs nothing to throw away. */
import { randomBytes } from 'node:crypto'
import type { Client } from 'pg'

/** Connections that every contender's pool may open: the default of `pg`, and of all peers that have one. */
export const CONNECTIONS = 10

/** An empty database beside the one of `url`, and its URL. Its name begins with `prefix`. */
export async function createDatabase(url: string, prefix: string): Promise<string> {
  const name = `${prefix}_${randomBytes(4).toString('hex')}`
  await withClient(maintenanceUrl(url), async (client) => {
    await client.query(`create database ${name}`)
    // What the one before left to be written is not for this one to wait for.
    await client.query('checkpoint')
  })
  const created = new URL(url)
  created.pathname = `/${name}`
  return created.href
}

/** Drops the database of `url` and those whose names begin with its name, with open connections too. */
export async function dropDatabase(url: string): Promise<void> {
  const name = databaseOf(url)
  await withClient(maintenanceUrl(url), async (client) => {
    const { rows } = await client.query('select datname from pg_database where starts_with(datname, $1)', [name])
    for (const { datname } of rows) await client.query(`drop database if exists "${datname}" with (force)`)
  })
}

export function databaseOf(url: string): string {
  return new URL(url).pathname.slice(1)
}

/** Opens a transaction that sees the database as it is now; the answer ends it, and rejects if it was lost before. */
export async function holdTransaction(url: string): Promise<() => Promise<void>> {
  const client = await newClient({ connectionString: url, application_name: 'bench: held open' })
  // A lost connection is reported when the transaction ends.
  client.on('error', () => {})
  await client.connect()
  await client.query('begin isolation level repeatable read')
  await client.query('select count(*) from pg_class')
  return async () => {
    await client.query('rollback')
    await client.end()
  }
}

export async function withClient<Answer>(url: string, use: (client: Client) => Promise<Answer>): Promise<Answer> {
  const client = await newClient({ connectionString: url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/** Loaded when it is needed: the memory of a worker on SQLite is measured in a process that loads this file. */
async function newClient(config: ConstructorParameters<typeof Client>[0]): Promise<Client> {
  const pg = await import('pg')
  return new pg.Client(config)
}

function maintenanceUrl(url: string): string {
  const other = new URL(url)
  other.pathname = '/postgres'
  return other.href
}
