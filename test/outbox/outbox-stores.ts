/** The stores that an outbox can be in, each with a transaction of the user's own beside it. */
import { DatabaseSync } from 'node:sqlite'
import { after, before } from 'node:test'
import pg from 'pg'
import { migrate } from '../../src/engines/postgres/module.ts'
import { systemClock } from '../../src/time/clock.ts'
import { tempFiles } from '../fixtures/temp-files.ts'
import { dropSchema, postgresServer, schemaUrl } from '../servers/postgres.ts'

export interface OwnTransaction {
  /** For `within`. */
  readonly within: object
  end(how: 'COMMIT' | 'ROLLBACK'): Promise<void>
}

export interface OutboxStore {
  readonly name: string
  /** Of a new store that is migrated. */
  url(): Promise<string>
  /** On the store that `url` made last. */
  begin(): Promise<OwnTransaction>
}

/** Call it at the top of a test file. */
export function outboxStores(): readonly OutboxStore[] {
  return [sqliteStage(), postgresStage()]
}

function sqliteStage(): OutboxStore {
  const files = tempFiles()
  let file = ''
  return {
    name: 'SQLite',
    url: async () => {
      file = files.next()
      return `sqlite:${file}`
    },
    begin: async () => {
      const handle = new DatabaseSync(file)
      handle.exec('BEGIN')
      return {
        within: handle,
        end: async (how) => {
          handle.exec(how)
          handle.close()
        },
      }
    },
  }
}

function postgresStage(): OutboxStore {
  const made: string[] = []
  let server = ''
  let schema = ''
  before(async () => {
    server = (await postgresServer()).url
  })
  after(async () => {
    for (const name of made) await dropSchema(server, name)
  })
  return {
    name: 'Postgres',
    url: async () => {
      const fresh = schemaUrl(await postgresServer())
      schema = fresh.schema
      made.push(schema)
      await migrate(fresh.url, { clock: systemClock, migrate: true })
      return fresh.url
    },
    begin: async () => {
      const client = new pg.Client({ connectionString: server })
      await client.connect()
      await client.query('BEGIN')
      return {
        within: client,
        end: async (how) => {
          await client.query(how)
          await client.end()
        },
      }
    },
  }
}
