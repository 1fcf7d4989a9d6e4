import type { OwnTables } from '../../../engine/own-tables.ts'
import { type Connected, connectTo } from './connect.ts'
import { readTableSettings } from './environment.ts'
import { migrateTables } from './migration.ts'
import { Reaper } from './reaper.ts'

/** What the command line calls, by a URL. */
export const ownTables: OwnTables = {
  reap: (url, tables, { environment, onReaped }) => {
    const settings = readTableSettings(environment)
    return using(url, ({ database, schema }) => new Reaper(database, { tables, schema, settings, onReaped }).runOnce())
  },
  migrate: (url, tables, { dryRun }) =>
    using(url, ({ database, schema }) => migrateTables(database, { tables, schema, dryRun })),
}

async function using<Answer>(url: string, run: (connected: Connected) => Promise<Answer>): Promise<Answer> {
  const connected = await connectTo(url)
  try {
    return await run(connected)
  } finally {
    await connected.close()
  }
}
