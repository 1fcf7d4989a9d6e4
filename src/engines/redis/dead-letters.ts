import type { Actor, DeadLetter, DeadLetterFilter, DeadLetters, PayloadEdit } from '../../engine/dead-letters.ts'
import { readAudit, writeNote } from './audit.ts'
import type { RedisDatabase } from './database.ts'
import type { RedisValue } from './driver.ts'
import { eraseJobs } from './erase.ts'
import type { FinishWaits } from './finish-waits.ts'
import { findRow, findRows, rowsScript } from './inspector.ts'
import { publicId, queueOf, typeOf } from './keys.ts'
import { HISTORY } from './lua/history.ts'
import { ENDED, LINKS } from './lua/links.ts'
import { REMOVAL, REMOVAL_BULL } from './lua/removal.ts'
import { listOf, parse, type Row, toRows, toView } from './rows.ts'
import { compose, GOES_ON_WHEN_FULL, type Script } from './scripts.ts'

/** Letters per script: Redis runs nothing else meanwhile. */
const LETTERS_MAX = 100

interface Parts {
  readonly database: RedisDatabase
  readonly finishWaits: FinishWaits
}

export function createDeadLetters({ database, finishWaits }: Parts): DeadLetters {
  const act = async (
    script: Script,
    ids: readonly string[],
    args: readonly RedisValue[],
  ): Promise<readonly boolean[]> => {
    const done: boolean[] = []
    for (let from = 0; from < ids.length; from += LETTERS_MAX) {
      const answers = listOf(await database.run(script, [...args, ...ids.slice(from, from + LETTERS_MAX)]))
      done.push(...answers.map((answer) => answer === 1))
    }
    if (done.includes(true)) finishWaits.notify()
    return done
  }
  return {
    list: (filter) => ('ids' in filter ? namedLetters(database, filter.ids) : listLetters(database, filter)),
    requeue: (ids, by, edit) =>
      edit === undefined
        ? act(requeueScript(), ids, [by.who, by.reason, '', '', '', '', ''])
        : Promise.all(ids.map((id) => requeueEdited(database, id, by, edit))),
    discard: (ids, { who, reason }) => act(discardScript(), ids, [who, reason]),
    undiscard: (ids, { who, reason }) => act(undiscardScript(), ids, [who, reason]),
    remove: async (ids, by, options) => {
      if (options?.erase !== true) return act(removeScript(), ids, [by.who, by.reason])
      const erased = await eraseJobs(database, new Set(ids), by)
      if (erased.size > 0) finishWaits.notify()
      return ids.map((id) => erased.delete(id))
    },
    note: (note) => writeNote(database, note),
    audit: (filter) => readAudit(database, filter),
  }
}

async function namedLetters(database: RedisDatabase, ids: readonly string[]): Promise<readonly DeadLetter[]> {
  const letters = (await findRows(database, ids)).map((row) => {
    const isLetter = row?.place === 'failed' || row?.fields.get('mrEnded') === 'discarded'
    return row !== null && isLetter ? toLetter(row) : null
  })
  return letters.filter((letter) => letter !== null)
}

function toLetter(row: Row): DeadLetter | null {
  const job = toView(row)
  if (job === null) return null
  return { job, error: job.error ?? { name: 'Error', code: null, message: '', stack: null } }
}

interface Found {
  readonly diedAtMs: number
  readonly id: string
  readonly queue: string
  readonly bullId: string
}

async function listLetters(database: RedisDatabase, filter: DeadLetterFilter): Promise<readonly DeadLetter[]> {
  const { type, sinceMs, beforeMs, limit, after } = filter
  if (limit < 1) return []
  const queues = type === undefined ? [] : [queueOf(type)]
  const bounds = [limit, sinceMs ?? '', beforeMs ?? '', after?.completedAtMs ?? '']
  const found = toFound(await database.run(lettersScript(), [...bounds, ...queues]))
  const page = found
    .filter(({ diedAtMs, id }) => after === undefined || diedAtMs < after.completedAtMs || id < after.id)
    .sort(byDeath)
    .slice(0, limit)
  if (page.length === 0) return []
  const rows = toRows(
    await database.run(
      rowsScript(),
      page.flatMap(({ queue, bullId }) => [queue, bullId]),
    ),
  )
  return rows.flatMap((row) => (row.place === 'failed' ? (toLetter(row) ?? []) : []))
}

function toFound(answer: unknown): Found[] {
  const values = listOf(answer)
  const found: Found[] = []
  for (let at = 0; at + 2 < values.length; at += 3) {
    const [diedAt, queue, bullId] = values.slice(at, at + 3).map(String)
    if (queue === undefined || bullId === undefined) continue
    found.push({ diedAtMs: Number(diedAt), id: publicId(typeOf(queue), bullId), queue, bullId })
  }
  return found
}

function byDeath(a: Found, b: Found): number {
  if (a.diedAtMs !== b.diedAtMs) return b.diedAtMs - a.diedAtMs
  return a.id < b.id ? 1 : -1
}

/** Only another edit changes what is compared, so a second try is rare. */
const EDIT_TRIES_MAX = 10

/** The payload version is inside JSON that Lua would not keep intact, so it is read, edited here and compared when written. */
async function requeueEdited(database: RedisDatabase, id: string, by: Actor, edit: PayloadEdit): Promise<boolean> {
  for (let tries = 0; tries < EDIT_TRIES_MAX; tries += 1) {
    const row = await findRow(database, id)
    if (row === null) return false
    const before = row.fields.get('mr') ?? ''
    const change = [edit.payload, before, withVersion(before, edit.payloadVersion)]
    const args = [by.who, by.reason, ...change, edit.replaces, JSON.stringify(edit.note), id]
    const [answer] = listOf(await database.run(requeueScript(), args))
    if (answer !== -1) return answer === 1
  }
  return false
}

function withVersion(text: string, version: number): string {
  const stored = parse(text === '' ? '{}' : text)
  const { v: _, ...more } = typeof stored === 'object' && stored !== null ? { v: null, ...stored } : { v: null }
  const after = version === 1 ? more : { ...more, v: version }
  return Object.keys(after).length === 0 ? '' : JSON.stringify(after)
}

const LIBRARY = [HISTORY, LINKS, ENDED, REMOVAL] as const

/**
 * The newest dead letters of each queue: as many as are asked for, and those that died in the same millisecond as the
 * last, because BullMQ's order within it is not ours. ARGV: time, how many, died at or after, died before, at or before
 * (each '' for any), queues (none: all). Answers time, queue and BullMQ's id of each in turn.
 */
export const lettersScript = compose(
  'letters',
  {},
  `
local limit, since = tonumber(ARGV[2]), ARGV[3] == '' and '-inf' or ARGV[3]
local newest = ARGV[5] ~= '' and ARGV[5] or '+inf'
if ARGV[4] ~= '' and (newest == '+inf' or tonumber(ARGV[4]) <= tonumber(newest)) then newest = '(' .. ARGV[4] end
local queues, found = {}, {}
for index = 6, #ARGV do queues[#queues + 1] = ARGV[index] end
if #queues == 0 then queues = call('SMEMBERS', KEYS[1]) end
for _, name in ipairs(queues) do
  local q = queueOf(name)
  local count, at, last, isEnough = 0, 0, nil, false
  repeat
    local page = call('ZREVRANGEBYSCORE', q.failed, newest, since, 'WITHSCORES', 'LIMIT', at, 200)
    for index = 1, #page, 2 do
      isEnough = count >= limit and page[index + 1] ~= last
      if isEnough then break end
      if call('HEXISTS', q.base .. page[index], 'data') == 1 then
        last = page[index + 1]
        -- The caller leaves out those that were on the previous page.
        if last ~= ARGV[5] then count = count + 1 end
        found[#found + 1] = last
        found[#found + 1] = name
        found[#found + 1] = page[index]
      end
    end
    at = at + 200
  until isEnough or #page < 400
end
return found
`,
)

/**
 * ARGV: time, who, reason, an edited payload with the field `mr` before and after, the payload that it replaces and what
 * the audit keeps of the edit (each '' for none), ids. Answers for each id: 1 when it is done, 0 when it is refused, -1 when
 * `mr` was another.
 */
export const requeueScript = compose(
  'requeue',
  {
    scripts: [...REMOVAL_BULL.scripts, 'reprocessJob'],
    functions: ['isQueuePausedOrMaxed', 'promoteDelayedJobs'],
  },
  ...LIBRARY,
  `
local by, isEdited = { who = ARGV[2], reason = ARGV[3] }, ARGV[4] ~= ''
local function requeue(q, id)
  if not q or placeOf(q, id) ~= 'failed' then return 0 end
  local key = q.base .. id
  local more, seq = moreOf(q, id), tonumber(call('HGET', key, 'mrSeq') or nil)
  if more.key and holderOf(more.key) then return 0 end
  local latest = more.latest and q[':latest:' .. more.latest.key]
  if latest and seq and seq < (tonumber(call('HGET', latest, 'seq') or nil) or 0) then return 0 end
  if isEdited and call('HGET', key, 'data') ~= ARGV[7] then return 0 end
  if isEdited and (call('HGET', key, 'mr') or '') ~= ARGV[5] then return -1 end

  local before = snapshot(q, id)
  addEvent(q, id, 'replayed', attemptsOf(q, id), nil, by)
  -- Jobs that fell due earlier stay ahead.
  promoteDelayedJobs(q.delayed, q.marker, q.wait, q.prioritized, q.events, q.base, now, q.pc,
    isQueuePausedOrMaxed(q.meta, q.active))
  local done = bull_reprocessJob(
    { key, q.events, q.failed, q.wait, q.meta, q.active, q.marker, q.prioritized, q.pc },
    { id, 'LPUSH', 'failedReason', 'failed', '1', '1' })
  if done ~= 1 then return 0 end
  call('HDEL', key, 'stc', 'stacktrace', 'progress', 'pb', 'mrError', 'mrTook')
  call('HSET', key, 'delay', 0, 'mrRun', now, 'mrAt', now)
  call('HINCRBY', key, 'mrReplays', 1)
  if isEdited then
    call('HSET', key, 'data', ARGV[4])
    if ARGV[6] ~= '' then call('HSET', key, 'mr', ARGV[6]) else call('HDEL', key, 'mr') end
  end
  if more.key then call('HSET', own('keys'), more.key, q.name .. ':' .. id) end
  if latest then call('HSET', latest, 'queued', id) end
  local after = call('HGET', key, 'mrAfter')
  if after and isHeld(cjson.decode(after)) and unqueue(q, id) then call('ZADD', q['waiting-children'], now, id) end
  changed(publicId(q, id))
  audit(q, id, 'replay', by, before, snapshot(q, id), isEdited and ARGV[8] or nil)
  return 1
end
local answers = {}
for index = 9, #ARGV do answers[#answers + 1] = requeue(find(ARGV[index])) end
return answers
`,
)

/** ARGV: time, who, reason, ids. Answers 1 for each that is done. The time of death is kept for an undo. */
export const discardScript = compose(
  'discard',
  REMOVAL_BULL,
  GOES_ON_WHEN_FULL,
  ...LIBRARY,
  `
local by, answers = { who = ARGV[2], reason = ARGV[3] }, {}
for index = 4, #ARGV do
  local q, id = find(ARGV[index])
  local isDead = q and placeOf(q, id) == 'failed'
  if isDead then
    local before, died = snapshot(q, id), call('ZSCORE', q.failed, id)
    ended(q, id, 'discarded', by)
    call('HSET', q.base .. id, 'mrDied', died)
    audit(q, id, 'discard', by, before, snapshot(q, id))
  end
  answers[#answers + 1] = isDead and 1 or 0
end
return answers
`,
)

/** ARGV: time, who, reason, ids. Answers 1 for each that is done. */
export const undiscardScript = compose(
  'undiscard',
  REMOVAL_BULL,
  ...LIBRARY,
  `
local by, answers = { who = ARGV[2], reason = ARGV[3] }, {}
for index = 4, #ARGV do
  local q, id = find(ARGV[index])
  local isDiscarded = q and call('HGET', q.base .. id, 'mrEnded') == 'discarded'
  if isDiscarded then
    local before, died = snapshot(q, id), call('HGET', q.base .. id, 'mrDied') or now
    call('HDEL', q.base .. id, 'mrEnded', 'mrDied')
    call('HSET', q.base .. id, 'finishedOn', died, 'mrAt', now)
    call('ZREM', q[':ended'], id)
    call('ZADD', q.failed, died, id)
    addEvent(q, id, 'dead', attemptsOf(q, id), nil, { who = by.who, reason = by.reason, undone = 'discarded' })
    changed(publicId(q, id))
    audit(q, id, 'undo', by, before, snapshot(q, id))
  end
  answers[#answers + 1] = isDiscarded and 1 or 0
end
return answers
`,
)

/** ARGV: time, who, reason, ids. Answers 1 for each that was a dead letter or discarded, and is gone. */
export const removeScript = compose(
  'remove',
  REMOVAL_BULL,
  GOES_ON_WHEN_FULL,
  ...LIBRARY,
  `
local by, answers = { who = ARGV[2], reason = ARGV[3] }, {}
for index = 4, #ARGV do
  local q, id = find(ARGV[index])
  local isLetter = q and (placeOf(q, id) == 'failed' or call('HGET', q.base .. id, 'mrEnded') == 'discarded')
  answers[#answers + 1] = isLetter and purge(q, id, by) and 1 or 0
end
return answers
`,
)
