import { type Actor, erasedView } from '../../engine/dead-letters.ts'
import { EngineError } from '../../errors.ts'
import { AuditAbout } from './audit.ts'
import type { RedisDatabase } from './database.ts'
import { findRow } from './inspector.ts'
import { bullId, queueOf } from './keys.ts'
import { HISTORY } from './lua/history.ts'
import { ENDED, LINKS } from './lua/links.ts'
import { REMOVAL, REMOVAL_BULL } from './lua/removal.ts'
import { toView } from './rows.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/** Only another act on dead letters adds an entry meanwhile, so a second try is rare. */
const TRIES_MAX = 20

/** The ids of those that were erased. */
export async function eraseJobs(database: RedisDatabase, ids: ReadonlySet<string>, by: Actor): Promise<Set<string>> {
  const audit = new AuditAbout(database, ids)
  const erased = new Set<string>()
  for (const id of ids) if (await eraseJob(database, { id, audit }, by)) erased.add(id)
  return erased
}

/**
 * Removes a job that is over, what the audit says about it, and BullMQ's events about it, which quote results and errors.
 * Entries are read and rewritten here, because Lua would not keep their empty arrays; if one was added meanwhile, the
 * script changes nothing and the new ones are read.
 */
async function eraseJob(
  database: RedisDatabase,
  { id, audit }: { readonly id: string; readonly audit: AuditAbout },
  { who, reason }: Actor,
): Promise<boolean> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const row = await findRow(database, id)
    const length = await audit.read()
    const { rewritten, type: told } = audit.of(id)
    const job = row === null ? null : toView(row)
    const type = job?.type ?? told
    if (type === null) return false
    const about = { jobId: id, type, subject: null }
    const before = erasedView(job?.state ?? null, rewritten.length)
    const entry = JSON.stringify({ who, reason, action: 'erase', about, before, after: null })
    const args = [id, job === null ? 0 : 1, length, entry, queueOf(type), bullId(type, id), ...rewritten.flat()]
    const answer = await database.run(eraseScript(), args)
    if (answer !== -1) return answer === 1
  }
  throw new EngineError(
    'ERR_STORAGE_BUSY',
    `the audit changed ${TRIES_MAX} times while job ${id} was erased; try again`,
  )
}

/**
 * ARGV: time, id, whether the job was there, how many entries the audit has, the entry of this act, queue and BullMQ's id
 * of the job, then place and text of each entry that is rewritten. Answers 1 when it is done, 0 when the job may still run or be needed, -1 when the store
 * has changed.
 *
 * A deleted entry of a stream stays in memory, and in dumps, as long as others of its block. So the stream is written anew,
 * with the same ids for the others.
 */
export const eraseScript = compose(
  'erase',
  REMOVAL_BULL,
  GOES_ON_WHEN_FULL,
  HISTORY,
  LINKS,
  ENDED,
  REMOVAL,
  `
local function isAbout(entry, id)
  for at = 1, #entry[2], 2 do
    if entry[2][at] == 'jobId' and entry[2][at + 1] == id then return true end
  end
  return false
end

local function eraseEvents(q, id)
  local kept, isFound, from, page = {}, false, '-', nil
  repeat
    page = call('XRANGE', q.events, from, '+', 'COUNT', 500)
    for _, entry in ipairs(page) do
      if isAbout(entry, id) then isFound = true else kept[#kept + 1] = entry end
      from = '(' .. entry[1]
    end
  until #page < 500
  if not isFound then return end
  local facts, last = call('XINFO', 'STREAM', q.events), nil
  for at = 1, #facts, 2 do
    if facts[at] == 'last-generated-id' then last = facts[at + 1] end
  end
  call('DEL', q.events)
  for _, entry in ipairs(kept) do call('XADD', q.events, entry[1], unpack(entry[2])) end
  if #kept == 0 then
    call('XADD', q.events, last, 'event', 'erased')
    call('XDEL', q.events, last)
  end
  call('XSETID', q.events, last)
end

local q, id = find(ARGV[2])
if (q and '1' or '0') ~= ARGV[3] or call('LLEN', own('audit')) ~= tonumber(ARGV[4]) then return -1 end
if q then
  local place = placeOf(q, id)
  local isLetter = place == 'failed' or call('HGET', q.base .. id, 'mrEnded') == 'discarded'
  local isOver = isLetter or ((place == 'completed' or place == 'ended') and not isNeeded(q, id))
  if not isOver or not forget(q, id) then return 0 end
end
eraseEvents(queueOf(ARGV[6]), ARGV[7])
for index = 8, #ARGV, 2 do call('LSET', own('audit'), ARGV[index], ARGV[index + 1]) end
call('RPUSH', own('audit'), '{"at":' .. string.format('%.0f', now) .. ',' .. string.sub(ARGV[5], 2))
return 1
`,
)
