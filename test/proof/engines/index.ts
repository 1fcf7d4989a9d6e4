/** Where a round finds the store of its engine. Each engine adds one line: its name, and a function that loads its file on demand. */
import type { EngineName, OpenStore } from '../scene.ts'

export const ENGINES: Partial<Readonly<Record<EngineName, () => Promise<OpenStore>>>> = {
  postgres: async () => (await import('./postgres.ts')).openPostgresStore,
  kafka: async () => (await import('./kafka.ts')).openKafka,
  sqlite: async () => (await import('./sqlite.ts')).openSqlite,
  redis: async () => (await import('./redis.ts')).openRedisStore,
}
