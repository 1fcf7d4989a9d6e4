import { applyMigrations } from '../../src/engine/open.ts'
import { systemClock } from '../../src/time/clock.ts'
import { runCases } from '../fixtures/admin.ts'
import { dropSchema, postgresServer, schemaUrl } from '../servers/postgres.ts'
import { CASES } from './cases/index.ts'

runCases('Postgres', CASES, async () => {
  const { url, schema } = schemaUrl(await postgresServer())
  await applyMigrations(url, { clock: systemClock, migrate: true })
  return { url, drop: () => dropSchema(url, schema) }
})
