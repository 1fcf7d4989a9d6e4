import { type Inspector, type JobFilter, SUCCESSORS_SEARCHED } from '../../engine/engine.ts'
import { type RemovedJobViews, waitUntilFinished } from '../../engine/wait-until-finished.ts'
import type { JobView } from '../../job/job.ts'
import { isEnded, type JobState } from '../../job/states.ts'
import type { Clock } from '../../time/clock.ts'
import { oldestDue } from './counts.ts'
import type { RedisDatabase } from './database.ts'
import type { FinishWaits } from './finish-waits.ts'
import { historyScript, readHistory } from './history.ts'
import { publicId, queueOf, typeOf } from './keys.ts'
import { composeRead, listOf, type Place, type Row, toRow, toRows, toView } from './rows.ts'
import { compose } from './scripts.ts'

export interface InspectorParts {
  readonly database: RedisDatabase
  readonly clock: Clock
  readonly finishWaits: FinishWaits
  readonly removedViews: RemovedJobViews
}

export async function findRow(database: RedisDatabase, id: string): Promise<Row | null> {
  return (await findRows(database, [id]))[0] ?? null
}

/** Jobs that one script reads: Redis does nothing else meanwhile. */
const FOUND_MAX = 500

/** Each in the order of its id. */
export async function findRows(database: RedisDatabase, ids: readonly string[]): Promise<readonly (Row | null)[]> {
  const rows: (Row | null)[] = []
  for (let from = 0; from < ids.length; from += FOUND_MAX) {
    const answers = await database.run(findScript(), ids.slice(from, from + FOUND_MAX))
    rows.push(...listOf(answers).map(toRow))
  }
  return rows
}

export function createInspector(parts: InspectorParts): Inspector {
  const { database } = parts
  return {
    find: async (ids) => (await findRows(database, ids)).map((row) => (row === null ? null : toView(row))),
    list: (filter) => list(database, filter),
    oldestDue: () => oldestDue(database),
    async history(id) {
      const [row, log] = listOf(await database.run(historyScript(), [id]))
      const found = toRow(row)
      return found === null ? [] : readHistory(found, listOf(log))
    },
    successors: async (ids) => listOf(await database.run(successorsScript(), ids)).map(String),
    waitFor: (id, wait) => waitFor(parts, id, wait),
  }
}

function waitFor(
  { database, clock, finishWaits, removedViews }: InspectorParts,
  id: string,
  wait: Parameters<Inspector['waitFor']>[1],
): Promise<JobView | null> {
  const read = async () => {
    const seen = finishWaits.changes
    const row = await findRow(database, id)
    const changed = async (ms: number): Promise<void> => {
      if (row !== null) await finishWaits.wait(row, { ms, seen, signal: wait.signal })
    }
    return { view: row === null ? null : toView(row), changed }
  }
  return waitUntilFinished({ clock, removedViews, read }, id, wait)
}

const PLACES_OF: Readonly<Record<JobState, readonly Place[]>> = {
  queued: ['wait', 'paused', 'prioritized', 'delayed', 'waiting-children'],
  in_progress: ['active'],
  completed: ['completed'],
  dead_letter: ['failed'],
  failed: [],
  cancelled: ['ended'],
  superseded: ['ended'],
  discarded: ['ended'],
}

const PLACES_ALL = [...new Set(Object.values(PLACES_OF).flat())]

/** Sets up to this size are read whole; above it only the index is walked, which lacks foreign jobs. */
const GATHERED_MAX = 1_000
/** Index entries per script. */
const STEP = 500

async function list(database: RedisDatabase, filter: JobFilter): Promise<readonly JobView[]> {
  if (filter.limit < 1 || filter.state === 'failed') return []
  const gathered = await collectFound(database, filter)
  return gathered === null ? walk(database, filter) : pick(database, filter, gathered)
}

interface Found {
  readonly id: string
  readonly queue: string
  readonly bullId: string
}

/** Null when there are too many. The newest first. */
async function collectFound(
  database: RedisDatabase,
  { state, type, before }: JobFilter,
): Promise<readonly Found[] | null> {
  const places = state === undefined ? PLACES_ALL : PLACES_OF[state]
  const sets = places.map((place) => (place === 'ended' ? ':ended' : place)).join(',')
  const answer = await database.run(collectScript(), [
    GATHERED_MAX,
    sets,
    ...(type === undefined ? [] : [queueOf(type)]),
  ])
  if (!Array.isArray(answer)) return null
  const found: Found[] = []
  for (let at = 0; at + 1 < answer.length; at += 2) {
    const [queue, bullId] = [String(answer[at]), String(answer[at + 1])]
    const id = publicId(typeOf(queue), bullId)
    if (before === undefined || id < before) found.push({ id, queue, bullId })
  }
  return found.sort((a, b) => (a.id < b.id ? 1 : -1))
}

/** A job may have moved on since: it is left out, and the next one takes its place on the page. */
async function pick(
  database: RedisDatabase,
  { state, limit }: JobFilter,
  found: readonly Found[],
): Promise<readonly JobView[]> {
  const views: JobView[] = []
  for (let from = 0; from < found.length && views.length < limit; from += limit) {
    const part = found.slice(from, from + limit)
    const args = part.flatMap(({ queue, bullId }) => [queue, bullId])
    for (const row of toRows(await database.run(rowsScript(), args))) {
      const view = toView(row)
      if (view === null || (state !== undefined && view.state !== state)) continue
      if (views.length < limit && views.at(-1)?.id !== view.id) views.push(view)
    }
  }
  return views
}

async function walk(database: RedisDatabase, { state, type, before, limit }: JobFilter): Promise<readonly JobView[]> {
  const views: JobView[] = []
  const places = state === undefined ? '' : PLACES_OF[state].join(',')
  const how = state !== undefined && isEnded(state) ? state : ''
  let below = before === undefined ? '' : `${before}:`
  do {
    const queue = type === undefined ? '' : queueOf(type)
    const answer = await database.run(walkScript(), [below, STEP, limit - views.length, queue, places, how])
    const [last, rows] = listOf(answer)
    for (const row of toRows(rows)) {
      const view = toView(row)
      if (view !== null) views.push(view)
    }
    below = typeof last === 'string' ? last : ''
  } while (below !== '' && views.length < limit)
  return views
}

/** ARGV: time, and ids as Millrace knows them. Answers a row for each, or 0. */
const findScript = composeRead(
  'find',
  `
local rows = {}
for index = 2, #ARGV do
  local q, id = find(ARGV[index])
  rows[index - 1] = q and rowOf(q, id) or 0
end
return rows
`,
)

/**
 * ARGV: time, and ids as Millrace knows them. Answers those of the jobs that come after any of them: those that may still run
 * are in a set, those that are over are looked for among the next jobs of the index.
 */
const successorsScript = composeRead(
  'successors',
  `
local wanted, found, met, first = {}, {}, {}, ARGV[2]
local function add(id)
  if not met[id] then met[id], found[#found + 1] = true, id end
end
for index = 2, #ARGV do
  wanted[ARGV[index]] = true
  if ARGV[index] < first then first = ARGV[index] end
  for _, member in ipairs(call('SMEMBERS', own('after:' .. ARGV[index]))) do
    local name, id = string.match(member, '^([^:]*):(.*)$')
    add(publicId(queueOf(name), id))
  end
end
for _, entry in ipairs(call('ZRANGEBYLEX', own('index'), '(' .. first .. ':', '+', 'LIMIT', 0, ${SUCCESSORS_SEARCHED + 1})) do
  local public, name = string.match(entry, '^(.*):([^:]*)$')
  local q, id = queueOf(name), public
  local foreign = string.gsub(name, '/', ':') .. '#'
  if string.sub(id, 1, #foreign) == foreign then id = string.sub(id, #foreign + 1) end
  local after = call('HGET', q.base .. id, 'mrAfter')
  for _, before in ipairs(after and cjson.decode(after).ids or {}) do
    if wanted[before] then add(public) end
  end
end
return found
`,
)

/** ARGV: time, then for each job: queue, BullMQ's id. Answers a row for each. */
export const rowsScript = composeRead(
  'rows',
  `
local rows = {}
for at = 2, #ARGV, 2 do rows[at / 2] = rowOf(queueOf(ARGV[at]), ARGV[at + 1]) end
return rows
`,
)

/**
 * The jobs of some sets, if there are few: foreign ones are in no index. ARGV: time, the most, names of sets with
 * commas, then queues (none: all). Answers queue and BullMQ's id of each in turn, or 0 when there are too many.
 */
const collectScript = compose(
  'gather',
  {},
  `
local queues, found, count = {}, {}, 0
for index = 4, #ARGV do queues[#queues + 1] = ARGV[index] end
if #queues == 0 then queues = call('SMEMBERS', KEYS[1]) end
local LISTS = { wait = true, paused = true, active = true }
for _, name in ipairs(queues) do
  for set in string.gmatch(ARGV[3], '[^,]+') do
    count = count + call(LISTS[set] and 'LLEN' or 'ZCARD', queueOf(name)[set])
    if count > tonumber(ARGV[2]) then return 0 end
  end
end
for _, name in ipairs(queues) do
  local q = queueOf(name)
  for set in string.gmatch(ARGV[3], '[^,]+') do
    for _, id in ipairs(call(LISTS[set] and 'LRANGE' or 'ZRANGE', q[set], 0, -1)) do
      found[#found + 1] = name
      found[#found + 1] = id
    end
  end
end
return found
`,
)

/**
 * One step through the index, newest first; entries of deleted jobs are removed. ARGV: time, the entry or id to go on
 * below ('' for the newest), how many entries to look at, how many rows, queue ('' for all), places with commas ('' for
 * all), how they ended ('' for any). Answers where to go on ('' at the end) and rows.
 */
const walkScript = composeRead(
  'walk',
  `
local most, limit, only = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local places = {}
for place in string.gmatch(ARGV[6], '[^,]+') do places[place] = true end
local entries = call('ZREVRANGEBYLEX', own('index'), ARGV[2] == '' and '+' or '(' .. ARGV[2], '-', 'LIMIT', 0, most)
local rows, last = {}, ''
for _, entry in ipairs(entries) do
  if #rows == limit then break end
  last = entry
  local id, name = string.match(entry, '^(.*):([^:]*)$')
  if only == '' or name == only then
    local q = queueOf(name)
    local public = string.gsub(name, '/', ':') .. '#'
    if string.sub(id, 1, #public) == public then id = string.sub(id, #public + 1) end
    if call('EXISTS', q.base .. id) == 0 then
      call('ZREM', own('index'), entry)
    elseif (ARGV[6] == '' or places[placeOf(q, id)])
      and (ARGV[7] == '' or call('HGET', q.base .. id, 'mrEnded') == ARGV[7]) then
      rows[#rows + 1] = rowOf(q, id)
    end
  end
end
if #entries < most and #rows < limit then last = '' end
return { last, rows }
`,
)
