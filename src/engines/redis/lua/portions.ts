import { compose, GOES_ON_WHEN_FULL } from '../scripts.ts'
import { STORED } from './enqueue.ts'
import { PLAIN, PLAIN_FUNCTIONS } from './enqueue-plain.ts'

const STAGED = `
local function staged(batch, number) return own('staged:' .. batch .. ':' .. number) end
`

/**
 * Keeps a portion of a batch where nothing looks: the arguments of `enqueuePlainScript` as a list. It expires unless
 * the batch is committed, so that a producer that dies leaves nothing behind. ARGV: time, batch, number of the portion,
 * for how long (ms), and what the list holds.
 */
export const stageScript = compose(
  'stage',
  {},
  STAGED,
  `
local key = staged(ARGV[2], ARGV[3])
-- Many values in one command; Lua's stack holds no more.
for from = 5, #ARGV, 2000 do call('RPUSH', key, unpack(ARGV, from, math.min(from + 1999, #ARGV))) end
call('PEXPIRE', key, ARGV[4])
`,
)

/**
 * From here on the batch is stored: its portions stay until each is published. ARGV: time, batch, number of portions.
 * Answers 0 where one has expired; then nothing is stored.
 */
export const commitScript = compose(
  'commit',
  {},
  STAGED,
  `
local batch, portions = ARGV[2], tonumber(ARGV[3])
for number = 1, portions do
  if call('EXISTS', staged(batch, number)) == 0 then return 0 end
end
-- Memory that is full does not stop it: the batch has its place.
${GOES_ON_WHEN_FULL}
call('ZADD', own('batches'), now, batch .. ':' .. portions)
for number = 1, portions do call('PERSIST', staged(batch, number)) end
return 1
`,
)

/**
 * Makes the jobs of a portion visible, once. Portions are published in turn, so the batch is done with the last. Memory
 * that is full does not stop it: what it writes takes the place of the list. ARGV: time, batch, number of the portion,
 * number of portions. Answers like `enqueuePlainScript`, or nothing if it was published before.
 */
export const publishScript = compose(
  'publish',
  { functions: PLAIN_FUNCTIONS },
  STORED,
  STAGED,
  `
${GOES_ON_WHEN_FULL}
local portion, isLast, batch = staged(ARGV[2], ARGV[3]), ARGV[3] == ARGV[4], ARGV[2] .. ':' .. ARGV[4]
local function done()
  call('DEL', portion)
  if isLast then call('ZREM', own('batches'), batch) end
end
local ARGV = call('LRANGE', portion, 0, -1)
if #ARGV == 0 then
  done()
  return {}
end
`,
  PLAIN,
  `
done()
return answers
`,
)

/**
 * Batches whose producer has not published all of them for so long that it is taken for dead; also those committed
 * later than now, before the server's clock was set back. ARGV: time, ms.
 */
export const unfinishedScript = compose(
  'unfinished',
  {},
  `
local found = call('ZRANGEBYSCORE', own('batches'), '-inf', now - tonumber(ARGV[2]))
for _, batch in ipairs(call('ZRANGEBYSCORE', own('batches'), '(' .. now, '+inf')) do found[#found + 1] = batch end
return found
`,
)
