import type { Fields } from './rows.ts'

/** The fields of a new plain job besides its delay, which is over: most jobs have no others when they are claimed. */
const PLAIN: readonly string[] = ['name', 'data', 'opts', 'timestamp', 'priority']

/** What a claim reads of a job's hash: all of it would take Redis longer, for names that are known and fields that nobody needs. */
const READ: readonly string[] = [...PLAIN, ...['atm', 'stc', 'ats', 'mr', 'mrRun', 'mrAfter', 'mrSeq', 'defa', 'rjk']]

/** What it answers, in this order. `mrStale` is stored nowhere: the claim says by it that a newer version exists. */
const CLAIMED: readonly string[] = [...READ, 'mrStale']

/** For Lua: where a field stands in the answer of `readClaimed`. */
export function at(name: string): number {
  return CLAIMED.indexOf(name) + 1
}

const quoted = (names: readonly string[]): string => names.map((name) => `'${name}'`).join(', ')

/** `readClaimed(key)`: these fields of a job, false or nothing where there is none. To look for one that is not there costs too. */
export const READ_CLAIMED: string = `
local function readClaimed(key)
  local fields = redis.pcall('HMGET', key, ${quoted([...PLAIN, 'delay'])})
  for nth = 1, ${PLAIN.length + 1} do
    if not fields[nth] then return redis.pcall('HMGET', key, ${quoted(READ)}) end
  end
  if call('HLEN', key) > ${PLAIN.length + 1} then return redis.pcall('HMGET', key, ${quoted(READ)}) end
  fields[${PLAIN.length + 1}] = nil
  return fields
end
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
