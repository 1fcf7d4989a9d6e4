import type { CreateHarness } from '../harness.ts'
import { kafkaHarness } from './kafka.ts'
import { memoryHarness } from './memory.ts'
import { postgresHarness } from './postgres.ts'
import { redisHarness } from './redis.ts'
import { sqliteHarness } from './sqlite.ts'

/** The engines of this package, by the name of their folder in src/engines. */
export const engines: Readonly<Record<string, CreateHarness>> = {
  memory: () => memoryHarness(),
  sqlite: () => sqliteHarness(),
  postgres: () => postgresHarness(),
  redis: () => redisHarness(),
  kafka: () => kafkaHarness(),
}
