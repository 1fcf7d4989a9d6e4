import type { Pause, Pauses } from '../../engine/pauses.ts'
import type { RedisDatabase } from './database.ts'
import { parse } from './rows.ts'
import { compose } from './scripts.ts'

/**
 * ARGV: time, type, who, reason. The queue itself stays as it is: BullMQ's own pause belongs to whoever pauses by BullMQ.
 */
const pauseScript = compose(
  'pause',
  {},
  `return call('HSETNX', own('paused'), ARGV[2], cjson.encode({ who = ARGV[3], reason = ARGV[4], since = now }))`,
)

export function createPauses(database: RedisDatabase): Pauses {
  return {
    pause: async (type, { who, reason }) => (await database.run(pauseScript(), [type, who, reason])) === 1,
    resume: async (type) => (await database.call('hdel', database.keys.paused, type)) === 1,
    async list() {
      // The driver makes an object of this answer.
      const answer = await database.call('hgetall', database.keys.paused)
      const pauses = Object.entries(answer ?? {}).map(([type, text]) => toPause(type, String(text)))
      return pauses.sort((left, right) => (left.type < right.type ? -1 : 1))
    },
  }
}

/** What another program has written there holds the type back all the same. */
function toPause(type: string, text: string): Pause {
  const stored = parse(text)
  const { who, reason, since }: Partial<Record<string, unknown>> =
    typeof stored === 'object' && stored !== null ? { ...stored } : {}
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
  return { type, who: textOf(who), reason: textOf(reason), sinceMs: typeof since === 'number' ? since : 0 }
}
