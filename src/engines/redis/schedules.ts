import type { ScheduleRecord, Schedules } from '../../engine/schedules.ts'
import type { RedisDatabase } from './database.ts'
import { ENQUEUE, ENQUEUE_BULL, receiptsFrom } from './enqueue.ts'
import { enqueueArgs } from './enqueue-plain.ts'
import { HISTORY } from './lua/history.ts'
import { ENDED, LINKS } from './lua/links.ts'
import { compose } from './scripts.ts'

/**
 * The record goes with its jobs: who finds another revision has stored no job. ARGV: time, name, record, 1 if there must
 * be one already, its revision, and then what `enqueueAll` reads. Answers false where the revision is another.
 */
const saveScript = compose(
  'schedule',
  ENQUEUE_BULL,
  HISTORY,
  LINKS,
  ENDED,
  ENQUEUE,
  `
local stored = call('HGET', own('schedules'), ARGV[2])
if ARGV[4] == '1' then
  local isRead, record = pcall(cjson.decode, stored or '')
  if not isRead or type(record) ~= 'table' or record.revision ~= ARGV[5] then return false end
elseif stored then
  return false
end
local count = tonumber(ARGV[6])
if ARGV[7] == '1' then
  local unknown = unknownPredecessor(8, count)
  if unknown then return { 'unknown', unknown } end
end
call('HSET', own('schedules'), ARGV[2], ARGV[3])
return enqueueAll(8, count)
`,
)

export function createSchedules(database: RedisDatabase): Schedules {
  return {
    list: () => listSchedules(database),
    async find(name) {
      const text = await database.call('hget', database.keys.schedules, name)
      return typeof text === 'string' ? toRecord(name, text) : null
    },
    async save({ name, revision, nextAtMs, body }, expected, jobs) {
      const text = JSON.stringify({ revision, nextAtMs, body })
      const condition = expected === null ? ['0', ''] : ['1', expected]
      const answer = await database.run(saveScript(), [name, text, ...condition, ...enqueueArgs(jobs)])
      return answer === null ? null : receiptsFrom(jobs, answer)
    },
    remove: async (name) => (await database.call('hdel', database.keys.schedules, name)) === 1,
  }
}

/** By name. */
export async function listSchedules(database: RedisDatabase): Promise<readonly ScheduleRecord[]> {
  // The driver makes an object of this answer.
  const answer = await database.call('hgetall', database.keys.schedules)
  const records = Object.entries(answer ?? {}).map(([name, text]) => toRecord(name, String(text)))
  return records.sort((left, right) => (left.name < right.name ? -1 : 1))
}

/** What is no record of ours is shown as it is, so that the keeper reports it and goes on with the others. */
function toRecord(name: string, text: string): ScheduleRecord {
  const unreadable = { name, revision: '', nextAtMs: null, body: text }
  try {
    const record: unknown = JSON.parse(text)
    if (typeof record !== 'object' || record === null) return unreadable
    const [revision, nextAtMs, body] = ['revision', 'nextAtMs', 'body'].map((field): unknown =>
      Reflect.get(record, field),
    )
    if (typeof revision !== 'string' || typeof body !== 'string') return unreadable
    return { name, revision, nextAtMs: typeof nextAtMs === 'number' ? nextAtMs : null, body }
  } catch {
    return unreadable
  }
}
