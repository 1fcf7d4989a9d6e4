import type { MigrateWorkload } from '../../src/cli/extensions.ts'
import { openDatabase } from './database.ts'
import { migrateSchema, plannedMigrations, type WorkloadSchema } from './schema.ts'

/** What `millrace migrate --workload` calls. */
export function migrationOf(schema: WorkloadSchema): MigrateWorkload {
  return async (url, { dryRun, nowMs }) => {
    const database = await openDatabase(url, { schemas: [], migrate: false })
    try {
      const planned = await plannedMigrations(database, schema)
      if (!dryRun) await migrateSchema(database, schema, nowMs)
      return planned.map(({ sql }) => database.textOf(sql[database.dialect.name]).trim().replace(/;$/, ''))
    } finally {
      await database.close()
    }
  }
}
