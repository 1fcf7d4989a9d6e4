import { createHash } from 'node:crypto'
import { type BullScript, bullFunctions, bullScript } from './bullmq.ts'

/**
 * A Lua script that Redis runs as one step. Only BullMQ's own Lua changes BullMQ's structures: its texts come first, as
 * functions that our code calls. So a whole batch is one call, and what BullMQ's programs rely on holds.
 */
export interface Script {
  readonly name: string
  readonly lua: string
  readonly sha: string
}

/**
 * The beginning of every script. `KEYS[1]` is the set of types, whose name contains the prefix; `ARGV[1]` is the time, or
 * empty where the server's clock decides.
 */
const PRELUDE = `
local call = redis.call
local rcall = call -- as BullMQ's functions call it
local prefix = string.sub(KEYS[1], 1, -8)
-- nowText is the time as an argument: Redis would format a number with every call, which costs as much as a simple command.
local now, nowText = tonumber(ARGV[1]), nil
if now == nil then
  local time = call('TIME')
  nowText = time[1] .. string.sub('00000' .. time[2], -6, -4)
  now = tonumber(nowText)
else
  nowText = string.format('%.0f', now)
end
local function own(name) return prefix .. '::' .. name end
-- Whether BullMQ's promoteDelayedJobs would find any: it costs three times as much to ask.
local function isDelayedDue(delayed)
  local first = call('ZRANGE', delayed, '0', '0', 'WITHSCORES')[2]
  return first and tonumber(first) < (now + 1) * 4096
end
-- On a cluster that moves this slot to another node, a key that is not here may be there, and a script could stop half way.
-- This key is nowhere, so then nothing has been done yet.
if string.find(prefix, '{', 1, true) then
  local probed = redis.pcall('EXISTS', own('none'))
  if type(probed) == 'table' and probed.err then return redis.error_reply('TRYAGAIN ' .. probed.err) end
end
-- The keys of a queue by BullMQ's names: q.wait, q.active, and so on; q.base .. id is a job.
local function queueOf(name)
  local base = prefix .. ':' .. name .. ':'
  return setmetatable({ name = name, base = base }, {
    __index = function(q, key)
      local full = base .. key
      rawset(q, key, full)
      return full
    end
  })
end
`

/**
 * First in scripts of workers and of those that free memory: with full memory, Redis refuses a script whose first write
 * may use more, and lets a script continue that has already written. This write has no other effect.
 */
export const GOES_ON_WHEN_FULL = `call('DEL', own('none'))`

/** The parts of BullMQ that a script calls. */
export interface BullParts {
  /** Whole scripts, called as `bull_{name}(KEYS, ARGV)`. */
  readonly scripts?: readonly BullScript[]
  /** Functions inside BullMQ's scripts, under their own names. */
  readonly functions?: readonly string[]
}

/** Composed on first use, so only programs that use Redis need BullMQ. */
export function compose(name: string, bull: BullParts, ...lua: readonly string[]): () => Script {
  let script: Script | null = null
  return () => {
    if (script !== null) return script
    const functions = bullFunctions(bull.functions ?? [])
    const bodies = (bull.scripts ?? []).map((script) => bullScript(script, functions))
    const text = [PRELUDE, ...functions, ...bodies, ...lua].join('\n')
    script = Object.freeze({ name, lua: text, sha: createHash('sha1').update(text).digest('hex') })
    return script
  }
}
