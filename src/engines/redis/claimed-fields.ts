import type { Fields } from './rows.ts'

/** What a claim reads of a job's hash: all of it would take Redis longer, for names that are known and fields that nobody needs. */
const READ: readonly string[] = [
  ...['name', 'data', 'opts', 'timestamp', 'priority', 'atm', 'stc', 'ats'],
  ...['mr', 'mrRun', 'mrAfter', 'mrSeq', 'defa', 'rjk'],
]

/** What it answers, in this order. `mrStale` is stored nowhere: the claim says by it that a newer version exists. */
const CLAIMED: readonly string[] = [...READ, 'mrStale']

/** For Lua: where a field stands in the answer of `readClaimed`. */
export function at(name: string): number {
  return CLAIMED.indexOf(name) + 1
}

/** `readClaimed(key)`: these fields of a job, false where there is none. */
export const READ_CLAIMED: string = `
local function readClaimed(key) return redis.pcall('HMGET', key, ${READ.map((name) => `'${name}'`).join(', ')}) end
`

/** From the answer of `readClaimed`. */
export function claimedFields(values: unknown): Fields {
  const fields = new Map<string, string>()
  if (!Array.isArray(values)) return fields
  for (const [index, name] of CLAIMED.entries()) {
    const value: unknown = values[index]
    if (typeof value === 'string') fields.set(name, value)
  }
  return fields
}
