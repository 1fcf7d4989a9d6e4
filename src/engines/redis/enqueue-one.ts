import type { NewJob } from '../../job/job.ts'
import { moreOf } from './enqueue-plain.ts'
import { queueOf } from './keys.ts'
import { compose } from './scripts.ts'

/** ARGV: time, queue, id, name, payload, BullMQ's options, priority, and what BullMQ has no field for. */
export function enqueueOneArgs(job: NewJob): readonly (string | number)[] {
  const { type, id, payload, priority, attempts } = job
  const options = `{"attempts":${attempts},"priority":${priority}}`
  return [queueOf(type), id, job.options?.name ?? type, payload, options, priority, moreOf(job)]
}

/**
 * One job without links to others that is due at once: what most calls enqueue. The steps of BullMQ's addPrioritizedJob as
 * in `enqueue-plain`, without any that such a job does not need, since Redis takes longer for Lua than for its commands.
 * Where more is needed it has done nothing and answers nothing, and `enqueue-plain` does it: the type is new, a delayed job
 * is due and goes first, or the id may be stored.
 */
export const enqueueOneScript = compose(
  'enqueue-one',
  { functions: ['getOrSetMaxEvents'] },
  `
local id, name, base = ARGV[3], ARGV[4], prefix .. ':' .. ARGV[2] .. ':'
local events, meta, delayed = base .. 'events', base .. 'meta', base .. 'delayed'
-- An answer that is a list costs Redis more than a number or a text.
if not call('HGET', meta, 'mr') then return false end
if call('ZCARD', delayed) > 0 and isDelayedDue(delayed) then return false end
if call('ZLEXCOUNT', own('index'), '[' .. id .. ':', '(' .. id .. ';') > 0 then return false end

-- The first write must be one that Redis refuses when memory is full.
local arrival = call('INCR', base .. 'pc')
call('HMSET', base .. id, 'name', name, 'data', ARGV[5], 'opts', ARGV[6], 'timestamp', nowText, 'delay', '0', 'priority', ARGV[7])
if ARGV[8] ~= '' then call('HSET', base .. id, 'mr', ARGV[8]) end
call('XADD', events, '*', 'event', 'added', 'jobId', id, 'name', name)
call('ZADD', base .. 'prioritized', ARGV[7] * 4294967296 + arrival % 4294967296, id)
call('ZADD', base .. 'marker', '0', '0')
-- Trimming takes a third of this command, and every settle trims too. While none takes jobs, the arrivals are counted on.
if arrival % 16 == 0 then call('XADD', events, 'MAXLEN', '~', getOrSetMaxEvents(meta), '*', 'event', 'waiting', 'jobId', id)
else call('XADD', events, '*', 'event', 'waiting', 'jobId', id) end
call('ZADD', own('index'), '0', id .. ':' .. ARGV[2])
return 1
`,
)
