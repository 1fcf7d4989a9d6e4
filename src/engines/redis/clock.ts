import type { StoreClock, StoreTime } from '../../engine/store-steps.ts'
import { LEASE_DEFAULT_MS } from '../../job/options.ts'
import type { RedisDatabase } from './database.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/** The server's clock, which decides when locks end, limits reset and delays pass. */
export function redisClock(database: RedisDatabase): Omit<StoreClock, 'onStep'> {
  return {
    async read(): Promise<StoreTime> {
      const answer = await database.run(readClockScript(), [])
      const [nowMs, followedMs] = Array.isArray(answer) ? answer : []
      return { nowMs: Number(nowMs), followedMs: Number(followedMs) }
    },
    shift: async (stepMs, followedMs) =>
      (await database.run(followClockScript(), [stepMs, followedMs, LEASE_DEFAULT_MS])) === 1,
  }
}

/** Answers the time and the sum of all steps that were followed so far. ARGV: time. */
const readClockScript = compose(
  'read-clock',
  {},
  `return { string.format('%.0f', now), call('GET', own('clock')) or '0' }`,
)

/**
 * The server's clock was set: moves what Redis counts by it. A step forward ends locks early: each active job without one
 * gets a lock without a holder for the length of its type's leases. Reapers leave it alone, and the holder takes it back
 * (`retakeScript`). Delayed jobs that were due stay due, and retries keep their delay. ARGV: time, step (ms), followed (ms), usual lease (ms). Answers 0 when another process has followed it.
 */
const followClockScript = compose(
  'follow-clock',
  {},
  GOES_ON_WHEN_FULL,
  `
local step, followed = tonumber(ARGV[2]), tonumber(ARGV[3])
if tonumber(call('GET', own('clock')) or '0') ~= followed then return 0 end
call('SET', own('clock'), string.format('%.0f', followed + step))

local function moveLocks(q)
  local lease = call('HGET', own('leases'), q.name) or ARGV[4]
  for _, id in ipairs(call('LRANGE', q.active, 0, -1)) do
    local lock = q.base .. id .. ':lock'
    local left = call('PTTL', lock)
    if left >= 0 then
      call('PEXPIRE', lock, math.max(1, left + step))
    elseif left == -2 and step > 0 then
      call('SET', lock, 'stepped', 'PX', lease)
    end
  end
end

local function moveScores(key, entries, by)
  for index = 1, #entries, 2 do
    call('ZADD', key, string.format('%.0f', tonumber(entries[index + 1]) + by), entries[index])
  end
end

local function keepDue(q)
  local was = now - step
  local from, to = string.format('(%.0f', (now + 1) * 4096), string.format('%.0f', (was - step) * 4096)
  local moved = {}
  local entries = call('ZRANGEBYSCORE', q.delayed, from, to, 'WITHSCORES', 'LIMIT', 0, 10000)
  for index = 1, #entries, 2 do
    local at = tonumber(entries[index + 1]) / 4096
    if at <= was + 1 or (tonumber(call('HGET', q.base .. entries[index], 'atm') or nil) or 0) > 0 then
      moved[#moved + 1], moved[#moved + 2] = entries[index], entries[index + 1]
    end
  end
  moveScores(q.delayed, moved, step * 4096)
end

for _, name in ipairs(call('SMEMBERS', KEYS[1])) do
  local q = queueOf(name)
  moveLocks(q)
  moveScores(q[':rate'], call('ZRANGE', q[':rate'], 0, -1, 'WITHSCORES'), step)
  if step < 0 then keepDue(q) end
end
return 1
`,
)
