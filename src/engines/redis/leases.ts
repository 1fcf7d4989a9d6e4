import type { Controls } from '../../engine/engine.ts'
import type { Lease, Lost, LostReason } from '../../engine/outcome.ts'
import { LEASE_DEFAULT_MS } from '../../job/options.ts'
import type { RedisCore } from './core.ts'
import type { RedisDatabase } from './database.ts'
import { bullId, queueOf } from './keys.ts'
import { HISTORY } from './lua/history.ts'
import { ENDED, LINKS } from './lua/links.ts'
import { REMOVAL, REMOVAL_BULL } from './lua/removal.ts'
import { WAKE } from './lua/slots.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/** `holds(q, id, token)`: whether the token still holds the lease; `lossOf(q, id)`: why it does not. */
export const FENCE = `
local function lossOf(q, id)
  return call('HGET', q.base .. id, 'mrEnded') == 'cancelled' and 'cancelled' or 'expired'
end

local function holds(q, id, token)
  return call('GET', q.base .. id .. ':lock') == token
end
`

/** ARGV: time, lease (ms), number of leases, then for each: queue, id, token. Answers for each '' or why it was lost. */
export const renewScript = compose(
  'renew',
  {},
  GOES_ON_WHEN_FULL,
  FENCE,
  `
local answers, queues = {}, {}
for index = 1, tonumber(ARGV[3]) do
  local at = 4 + 3 * (index - 1)
  local q = queues[ARGV[at]] or queueOf(ARGV[at])
  queues[ARGV[at]] = q
  local id, token = ARGV[at + 1], ARGV[at + 2]
  if holds(q, id, token) then
    call('PEXPIRE', q.base .. id .. ':lock', ARGV[2])
    call('SREM', q.stalled, id)
    answers[index] = ''
  else
    answers[index] = lossOf(q, id)
  end
end
return answers
`,
)

/** ARGV: time, queue, id, token, progress. */
export const reportScript = compose(
  'report',
  { scripts: ['updateProgress'] },
  GOES_ON_WHEN_FULL,
  FENCE,
  `
local q, id = queueOf(ARGV[2]), ARGV[3]
if not holds(q, id, ARGV[4]) then return 0 end
return bull_updateProgress({ q.base .. id, q.events, q.meta }, { id, ARGV[5] }) == 0 and 1 or 0
`,
)

/** One call for leases of all types. */
export async function renewLeases(
  database: RedisDatabase,
  leases: readonly Lease[],
  leaseMs: number,
): Promise<readonly Lost[]> {
  const args = leases.flatMap(({ job, token }) => [queueOf(job.type), bullId(job.type, job.id), token])
  return lostOf(leases, await database.run(renewScript(), [leaseMs, leases.length, ...args]))
}

export async function reportProgress(
  database: RedisDatabase,
  { job, token }: Lease,
  progress: string,
): Promise<boolean> {
  const args = [queueOf(job.type), bullId(job.type, job.id), token, progress]
  return (await database.run(reportScript(), args)) === 1
}

export function lostOf(leases: readonly Lease[], answer: unknown): readonly Lost[] {
  const answers: readonly unknown[] = Array.isArray(answer) ? answer : []
  return leases.flatMap((lease, index): readonly Lost[] => {
    const reason = answers[index]
    return reason === '' ? [] : [{ lease, reason: reasonOf(reason) }]
  })
}

function reasonOf(answer: unknown): LostReason {
  return answer === 'cancelled' ? 'cancelled' : 'expired'
}

/**
 * Gives a holder back the lock that a step of the clock took: one without a holder, of a job that this worker started last.
 * ARGV: time, worker, lease (ms), number of leases, then for each: queue, id, token. Answers how many were taken back.
 */
const retakeScript = compose(
  'retake',
  {},
  GOES_ON_WHEN_FULL,
  `
local retaken = 0
for index = 1, tonumber(ARGV[4]) do
  local at = 5 + 3 * (index - 1)
  local key = queueOf(ARGV[at]).base .. ARGV[at + 1]
  if call('GET', key .. ':lock') == 'stepped' and call('HGET', key, 'pb') == ARGV[2] then
    call('SET', key .. ':lock', ARGV[at + 2], 'PX', ARGV[3])
    retaken = retaken + 1
  end
end
return retaken
`,
)

/** Takes back locks that ended only because the server's clock was set. True if there were any. */
export async function retakeLocks(
  database: RedisDatabase,
  worker: string,
  leases: readonly Lease[],
  leaseMs: number = LEASE_DEFAULT_MS,
): Promise<boolean> {
  const args = leases.flatMap(({ job, token }) => [queueOf(job.type), bullId(job.type, job.id), token])
  return Number(await database.run(retakeScript(), [worker, leaseMs, leases.length, ...args])) > 0
}

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
  WAKE,
  `
local q, id = find(ARGV[2])
if not q then return 0 end
local place = placeOf(q, id)
if place == 'completed' or place == 'failed' or place == 'ended' then return 0 end
ended(q, id, 'cancelled', { who = ARGV[3], reason = ARGV[4] })
-- For parents and deduplication in BullMQ it counts as removed.
removeParentDependencyKey(q.base .. id, false, nil, nil)
removeDeduplicationKeyIfNeededOnRemoval(q.base, id, call('HGET', q.base .. id, 'deid') or nil)
if place == 'active' then
  wake(q)
  call('PUBLISH', own('lost'), q.name .. ':' .. id)
end
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
