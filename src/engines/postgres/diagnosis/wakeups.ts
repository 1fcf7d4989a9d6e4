/** How processes hear of each other's jobs: by NOTIFY, or by looking. */
import type { Finding } from '../../../engine/diagnosis.ts'
import { formatAge, ok, warning } from '../../../engine/findings.ts'
import { systemClock } from '../../../time/clock.ts'
import type { PostgresCore } from '../core.ts'

/** So long may the first beat of an engine that was opened just now take. */
const BEAT_MS = 3_000

export async function lookAtWakeups(
  { channel }: Pick<PostgresCore, 'channel'>,
  { listen, prepare, pollMs }: { readonly listen: boolean; readonly prepare: boolean; readonly pollMs: number },
): Promise<readonly Finding[]> {
  const poll = `a waiting worker looks every ${pollMs < 1_000 ? `${pollMs} ms` : formatAge(pollMs)}`
  if (!listen) {
    const how = prepare ? 'LISTEN is off' : 'LISTEN and prepared statements are off, as a transaction pooler needs it'
    return [ok('wake-ups', `${how}; ${poll}`)]
  }
  for (const untilMs = systemClock.monotonicMs() + BEAT_MS; systemClock.monotonicMs() < untilMs; ) {
    if (channel.isListening) return [ok('wake-ups', `notifications arrive; besides, ${poll}`)]
    await systemClock.sleep(20)
  }
  return [
    warning(
      'wake-ups',
      `what is notified does not arrive at the connection that listens; ${poll}`,
      'A pooler in transaction mode drops LISTEN: add ?pooler=transaction to the URL, which also turns prepared statements off, or connect past the pooler.',
    ),
  ]
}
