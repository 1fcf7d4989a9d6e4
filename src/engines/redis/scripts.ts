import { createHash } from 'node:crypto'
import { type BullScript, bullFunctions, bullScript } from './bullmq.ts'

/**
 * A script of ours: Lua that Redis runs as one step. BullMQ's structures are only changed by BullMQ's own Lua, whose
 * texts stand in front of ours as functions; so a whole batch is one call, and what BullMQ's programs rely on holds.
 */
export interface Script {
  readonly name: string
  readonly lua: string
  readonly sha: string
}

/**
 * What every script begins with. `KEYS[1]` is the set of types, whose name tells the prefix; `ARGV[1]` is the time, or
 * empty where Redis's own clock decides.
 */
const PRELUDE = `
local call = redis.call
local rcall = call -- as BullMQ's functions call it
local prefix = string.sub(KEYS[1], 1, -8)
local now = tonumber(ARGV[1])
if now == nil then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local function own(name) return prefix .. '::' .. name end
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
 * First in a script of a worker or of who makes room: when its memory is full, Redis refuses a script whose first write
 * could take more of it, and lets one go on that has written. This write does nothing else.
 */
export const GOES_ON_WHEN_FULL = `call('DEL', own('none'))`

/** What of BullMQ a script calls. */
export interface BullParts {
  /** Whole scripts, called as `bull_{name}(KEYS, ARGV)`. */
  readonly scripts?: readonly BullScript[]
  /** Functions that BullMQ's scripts are made of, under their own names. */
  readonly functions?: readonly string[]
}

/** Made when it is first used, so that only who uses Redis needs BullMQ. */
export function compose(name: string, bull: BullParts, ...lua: readonly string[]): () => Script {
  let script: Script | null = null
  return () => {
    if (script !== null) return script
    const bodies = (bull.scripts ?? []).map(bullScript)
    const functions = bullFunctions([...(bull.functions ?? []), ...bodies.flatMap(({ needs }) => needs)])
    const text = [PRELUDE, ...functions, ...bodies.map(({ lua: body }) => body), ...lua].join('\n')
    script = Object.freeze({ name, lua: text, sha: createHash('sha1').update(text).digest('hex') })
    return script
  }
}
