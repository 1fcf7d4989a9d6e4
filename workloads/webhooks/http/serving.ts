/** What webhooks add to `millrace serve` on a database that has their tables. */
import type { OpenPage } from '../../../src/cli/extensions.ts'
import { openDatabase } from '../../database/database.ts'
import { plannedMigrations } from '../../database/schema.ts'
import { webhooksSchema } from '../store/schema.ts'
import { openWebhooks } from '../webhooks.ts'
import { webhookRoutes } from './routes.ts'

export const openPage: OpenPage = async ({ engine, mill, clock, log }) => {
  if (!/^(?:sqlite|postgres|postgresql):/.test(engine) || engine === 'sqlite::memory:') return null
  if (!(await hasTables(engine))) return null
  const webhooks = await openWebhooks({ engine, mill, clock, log, migrate: false })
  return { routes: webhookRoutes(webhooks), close: () => webhooks.close() }
}

async function hasTables(engine: string): Promise<boolean> {
  const database = await openDatabase(engine, { schemas: [], migrate: false })
  try {
    return (await plannedMigrations(database, webhooksSchema)).length === 0
  } finally {
    await database.close()
  }
}
