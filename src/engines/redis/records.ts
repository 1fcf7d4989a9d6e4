import {
  bodyFields,
  EXPIRED_KEPT_MS,
  type NewRecord,
  PUT_REVISION,
  type RecordKind,
  type Records,
  type StoredRecord,
} from '../../engine/records.ts'
import type { StoreTime } from '../../engine/store-steps.ts'
import { watchEvery } from '../../time/clock.ts'
import type { RedisCore } from './core.ts'
import type { RedisDatabase } from './database.ts'
import type { RedisValue } from './driver.ts'
import { ENQUEUE, ENQUEUE_BULL, receiptsFrom } from './enqueue.ts'
import { enqueueArgs } from './enqueue-plain.ts'
import { HISTORY } from './lua/history.ts'
import { ENDED, LINKS } from './lua/links.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/** A hash for each kind, name → JSON; and its names by their expiry, for those that were put. */
export const KIND = `
local hash, expiries = own('records:' .. ARGV[2]), own('expiries:' .. ARGV[2])
local function write(name, revision, body, ttl)
  local record = { revision = revision, body = body, saved = now }
  if ttl ~= '' then record.expires = now + tonumber(ttl) end
  call('HSET', hash, name, cjson.encode(record))
end
local function announce()
  if ARGV[2] == 'pause' then call('PUBLISH', own('pauses'), '') end
end
`

/** ARGV: time, kind, name, revision, body, time to live (ms) or empty, 1 if there must be one already, its revision. */
export const EXPECTED = `
local function isExpected()
  local stored = call('HGET', hash, ARGV[3])
  if ARGV[7] ~= '1' then return not stored end
  local isRead, record = pcall(cjson.decode, stored or '')
  return isRead and type(record) == 'table' and record.revision == ARGV[8]
end
`

/** ARGV: time, kind. Answers the time, the sum of all steps that were followed, and then names and records in turn. */
const listScript = compose(
  'list-records',
  {},
  KIND,
  `
local answer = call('HGETALL', hash)
table.insert(answer, 1, string.format('%.0f', now))
table.insert(answer, 2, call('GET', own('clock')) or '0')
return answer
`,
)

/**
 * The record goes with its jobs: a writer that finds another revision has stored no job. ARGV: as above, and then what
 * `enqueueAll` reads. Answers false if the revision is another.
 */
const saveScript = compose(
  'save-record',
  ENQUEUE_BULL,
  HISTORY,
  LINKS,
  ENDED,
  ENQUEUE,
  KIND,
  EXPECTED,
  `
if not isExpected() then return false end
local count = tonumber(ARGV[9])
if ARGV[10] == '1' then
  local unknown = unknownPredecessor(11, count)
  if unknown then return { 'unknown', unknown } end
end
write(ARGV[3], ARGV[4], ARGV[5], ARGV[6])
announce()
return enqueueAll(11, count)
`,
)

/** The same without jobs, for records that expire: leadership must go on when Redis is full, because a keeper makes room. */
const renewScript = compose(
  'renew-record',
  {},
  GOES_ON_WHEN_FULL,
  KIND,
  EXPECTED,
  `
if not isExpected() then return 0 end
write(ARGV[3], ARGV[4], ARGV[5], ARGV[6])
return 1
`,
)

/** ARGV: time, kind, time to live (ms), how long expired ones are kept (ms), and then names and bodies in turn. */
const putScript = compose(
  'put-records',
  {},
  GOES_ON_WHEN_FULL,
  KIND,
  `
for index = 5, #ARGV, 2 do
  write(ARGV[index], '${PUT_REVISION}', ARGV[index + 1], ARGV[3])
  call('ZADD', expiries, string.format('%.0f', now + tonumber(ARGV[3])), ARGV[index])
end
local before = string.format('(%.0f', now - tonumber(ARGV[4]))
for _, name in ipairs(call('ZRANGEBYSCORE', expiries, '-inf', before, 'LIMIT', 0, 1000)) do
  call('HDEL', hash, name)
  call('ZREM', expiries, name)
end
`,
)

/** ARGV: time, kind, and then names. */
const removeScript = compose(
  'remove-records',
  {},
  KIND,
  `
local removed = 0
for index = 3, #ARGV do
  removed = removed + call('HDEL', hash, ARGV[index])
  call('ZREM', expiries, ARGV[index])
end
announce()
return removed
`,
)

export function createRecords({ database, clock, steps }: RedisCore): Records {
  return {
    /** The server's time comes with the answer. Expiries move with its clock, so a list that was read before that is read again. */
    async list(kind) {
      await steps.follow(Number.POSITIVE_INFINITY)
      const askedAtMs = clock.monotonicMs()
      const { records, ...time } = await listRecords(database, kind)
      return (await steps.heard(time, askedAtMs)) ? records : (await listRecords(database, kind)).records
    },
    async save(kind, { name, revision, body }, expected, { ttlMs, jobs = [] } = {}) {
      const args = recordArgs(kind, { name, revision, body }, expected, ttlMs)
      if (ttlMs !== undefined && jobs.length === 0) return (await database.run(renewScript(), args)) === 1 ? [] : null
      const answer = await database.runKept(saveScript(), [...args, ...enqueueArgs(jobs)])
      return answer === null ? null : receiptsFrom(jobs, answer)
    },
    async put(kind, records, ttlMs) {
      const pairs = records.flatMap(({ name, body }) => [name, body])
      await database.run(putScript(), [kind, ttlMs, EXPIRED_KEPT_MS, ...pairs])
    },
    remove: async (kind, names) =>
      names.length === 0 ? 0 : Number(await database.run(removeScript(), [kind, ...names])),
    onChange(listener) {
      const stopListening = database.listen(database.keys.pauses, { hear: listener, resumed: listener })
      const stopLooking = watchEvery(LOOK_MS, listener)
      return () => {
        stopListening()
        stopLooking()
      }
    },
  }
}

/** The arguments that `EXPECTED` and `write` read. */
export function recordArgs(
  kind: RecordKind,
  { name, revision, body }: NewRecord,
  expected: string | null,
  ttlMs: number | undefined,
): readonly RedisValue[] {
  return [kind, name, revision, body, ttlMs ?? '', ...(expected === null ? ['0', ''] : ['1', expected])]
}

/** Messages can be lost with a connection, so pauses are looked for this often, too. */
const LOOK_MS = 5_000

export async function listRecords(
  database: RedisDatabase,
  kind: RecordKind,
): Promise<StoreTime & { readonly records: readonly StoredRecord[] }> {
  const answer = await database.run(listScript(), [kind])
  const [now, followed, ...pairs] = Array.isArray(answer) ? answer.map(String) : []
  const nowMs = Number(now)
  const records: StoredRecord[] = []
  for (let index = 0; index < pairs.length; index += 2) {
    records.push(toRecord(pairs[index] ?? '', pairs[index + 1] ?? '', nowMs))
  }
  return {
    nowMs,
    followedMs: Number(followed),
    records: records.sort((one, other) => (one.name < other.name ? -1 : 1)),
  }
}

/** Text that is no record of ours is shown as it is, so that the keeper reports it and goes on with the others. */
function toRecord(name: string, text: string, nowMs: number): StoredRecord {
  const { revision, body, saved, expires } = bodyFields(text)
  if (typeof revision !== 'string' || typeof body !== 'string') {
    return { name, revision: '', body: text, savedAtMs: 0, leftMs: null }
  }
  return {
    name,
    revision,
    body,
    savedAtMs: Number(saved) || 0,
    leftMs: typeof expires === 'number' ? expires - nowMs : null,
  }
}
