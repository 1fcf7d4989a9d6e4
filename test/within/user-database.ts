/** A schema with Millrace's tables and a table of the user's own, and a mill on it. */
import { after, before } from 'node:test'
import pg from 'pg'
import { z } from 'zod'
import { migrate } from '../../src/engines/postgres/module.ts'
import { defineJob, type Mill, open } from '../../src/index.ts'
import { systemClock } from '../../src/time/clock.ts'
import { dropSchema, postgresServer, query, schemaUrl } from '../servers/postgres.ts'

export const welcome = defineJob({
  type: 'welcome',
  payload: z.object({ name: z.string() }),
  run: ({ payload }) => `welcomed ${payload.name}`,
})

export interface UserDatabase {
  readonly mill: Mill
  readonly pool: pg.Pool
  readonly schema: string
  /** Names of users and of those who are to be welcomed, in this order. */
  stored(): Promise<readonly [users: readonly string[], welcomes: readonly string[]]>
}

/** Call it at the top of a test file; the database is ready once its tests run. */
export function useUserDatabase(poolMax = 4): () => UserDatabase {
  let database: UserDatabase | null = null
  let url = ''
  before(async () => {
    const server = await postgresServer()
    const made = schemaUrl(server)
    url = made.url
    await migrate(url, { clock: systemClock, migrate: true })
    await query(url, `create table ${made.schema}.users (name text primary key)`)
    const pool = new pg.Pool({ connectionString: server.url, max: poolMax, options: `-c search_path=${made.schema}` })
    const names = async (text: string): Promise<readonly string[]> =>
      (await query<{ name: string }>(url, text.replaceAll('@', `${made.schema}.`))).map(({ name }) => name)
    database = {
      mill: await open(url),
      pool,
      schema: made.schema,
      stored: async () => [
        await names('select name from @users order by name'),
        await names(`select payload::json ->> 'name' as name from @jobs where type = 'welcome' order by 1`),
      ],
    }
  })
  after(async () => {
    await database?.mill.close()
    await database?.pool.end()
    if (database !== null) await dropSchema(url, database.schema)
  })
  return () => {
    if (database === null) throw new Error('the tests have not started yet')
    return database
  }
}
