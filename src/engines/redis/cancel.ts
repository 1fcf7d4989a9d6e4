import type { Controls } from '../../engine/engine.ts'
import type { RedisCore } from './core.ts'
import { HISTORY } from './lua/history.ts'
import { ENDED, LINKS } from './lua/links.ts'
import { REMOVAL, REMOVAL_BULL } from './lua/removal.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/**
 * ARGV: time, id, who, reason. Answers 0 when the job does not exist or has finished. Deleting the lock
 * fences the holder of a running job, which learns of it on the channel, by queue and BullMQ's id.
 */
const cancelScript = compose(
  'cancel',
  {
    scripts: REMOVAL_BULL.scripts,
    functions: ['removeDeduplicationKeyIfNeededOnRemoval', 'removeParentDependencyKey'],
  },
  GOES_ON_WHEN_FULL,
  HISTORY,
  LINKS,
  ENDED,
  REMOVAL,
  `
local q, id = find(ARGV[2])
if not q then return 0 end
local place = placeOf(q, id)
if place == 'completed' or place == 'failed' or place == 'ended' then return 0 end
ended(q, id, 'cancelled', { who = ARGV[3], reason = ARGV[4] })
-- For parents and deduplication in BullMQ it counts as removed.
removeParentDependencyKey(q.base .. id, false, nil, nil)
removeDeduplicationKeyIfNeededOnRemoval(q.base, id, call('HGET', q.base .. id, 'deid') or nil)
if place == 'active' then call('PUBLISH', own('lost'), q.name .. ':' .. id) end
return 1
`,
)

export function createControls({ database, finishWaits }: RedisCore): Controls {
  return {
    async cancel(id, { who, reason }) {
      const isCancelled = (await database.run(cancelScript(), [id, who, reason])) === 1
      if (isCancelled) finishWaits.notify()
      return isCancelled
    },
  }
}
