import { RETENTION_BY, type Retention, type RetentionRule, type Sweep, type SweepStep } from '../../engine/retention.ts'
import type { RedisDatabase } from './database.ts'
import type { Endings } from './endings.ts'
import { queueOf } from './keys.ts'
import { bytesScript, sweepScript } from './lua/retention.ts'
import { listOf } from './reading.ts'

/**
 * Jobs measured in each of BullMQ's sets. Up to that many of a state and type are measured one by one; of more, the mean
 * of those in even steps counts for all, which is off by as much as the sizes of their payloads differ.
 */
const SAMPLES = 25

export function createRetention({
  database,
  endings,
}: {
  readonly database: RedisDatabase
  readonly endings: Endings
}): Retention {
  return {
    async sweep(rules, step) {
      const swept = await sweep(database, rules, step)
      if (swept.removed > 0) endings.notify()
      return swept
    },
    usedBytes: async () => Number(await database.run(bytesScript(), [SAMPLES])),
    // What is removed is free at once.
    async compact() {
      await database.ping()
      return false
    },
  }
}

async function sweep(
  database: RedisDatabase,
  rules: readonly RetentionRule[],
  { from, max, dryRun = false, by = RETENTION_BY }: SweepStep,
): Promise<Sweep> {
  const told = rules.flatMap(({ what, type, beforeMs }) => [
    what,
    type === undefined ? '' : queueOf(type),
    beforeMs === null ? '' : beforeMs,
  ])
  const args = [from ?? '', Math.max(1, max), dryRun ? '1' : '0', by.who, by.reason, ...told]
  const [removed, next] = listOf(await database.run(sweepScript(), args))
  return { removed: Number(removed), next: next === '' || next === undefined ? null : String(next) }
}
