import { randomUUID } from 'node:crypto'
import { EngineError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import type { RedisDatabase } from './database.ts'
import { enqueueArgs, PLAIN, PLAIN_FUNCTIONS, STORED } from './enqueue-plain.ts'
import { listOf } from './rows.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/** Jobs that one script stores: Redis serves nobody else meanwhile. */
export const PORTION = 1_000

/** Far longer than staging a batch takes. What a producer that died has staged stays in memory for that long. */
const STAGED_MS = 600_000

/** A producer that has published nothing for this long is dead, or will find that another has done it. */
const UNFINISHED_MS = 10_000

/**
 * Stores a batch of plain jobs, whole or not at all, without stopping Redis for the time that all of them take. The
 * portions are staged where nothing looks. One short script commits the batch, and only then each portion is published
 * by a script of its own. A producer that dies before the commit has stored nothing; the rest of a batch whose producer
 * dies after it is published by a reaper. Answers what `receiptsFrom` reads.
 */
export async function storeInPortions(
  database: RedisDatabase,
  jobs: readonly NewJob[],
  { stagedMs = STAGED_MS }: { readonly stagedMs?: number } = {},
): Promise<readonly unknown[]> {
  const batch = randomUUID()
  const portions = portionsOf(await resolved(database, jobs))
  await stage(database, batch, portions, stagedMs)
  if (Number(await database.run(commitScript(), [batch, portions.length])) === 0) {
    await unstage(database, batch, portions.length)
    throw new EngineError(
      'ERR_STORAGE_BUSY',
      `this batch of ${jobs.length} jobs took longer than ${stagedMs / 1_000} s to send, and nothing of it is stored; enqueue it again in smaller batches`,
    )
  }
  const answers: unknown[] = []
  for (const [index, portion] of portions.entries()) {
    const answer = listOf(await database.run(publishScript(), [batch, index + 1, portions.length]))
    // A reaper has done it; the jobs are plain, so each is stored under its own id.
    answers.push(...(answer.length > 0 ? answer : portion.flatMap(({ id }) => ['enqueued', id])))
  }
  return answers
}

/** A delay begins with the call, whenever its portion is published. */
async function resolved(database: RedisDatabase, jobs: readonly NewJob[]): Promise<readonly NewJob[]> {
  if (jobs.every(({ delayMs }) => delayMs === 0)) return jobs
  const nowMs = database.now === '' ? await database.serverNowMs() : Number(database.now)
  return jobs.map((job) =>
    job.runAtMs === null && job.delayMs > 0 ? { ...job, runAtMs: nowMs + job.delayMs, delayMs: 0 } : job,
  )
}

function portionsOf(jobs: readonly NewJob[]): readonly (readonly NewJob[])[] {
  const length = Math.ceil(jobs.length / PORTION)
  return Array.from({ length }, (_, index) => jobs.slice(index * PORTION, (index + 1) * PORTION))
}

async function stage(
  database: RedisDatabase,
  batch: string,
  portions: readonly (readonly NewJob[])[],
  stagedMs: number,
): Promise<void> {
  try {
    for (const [index, portion] of portions.entries()) {
      // The list begins with a place for the time, as the arguments of a script do.
      await database.run(stageScript(), [batch, index + 1, stagedMs, '', ...enqueueArgs(portion)])
    }
  } catch (error) {
    await unstage(database, batch, portions.length)
    throw error
  }
}

/** Of a batch that is not committed. If this fails too, what is left expires. */
async function unstage(database: RedisDatabase, batch: string, portions: number): Promise<void> {
  const keys = Array.from({ length: portions }, (_, index) => database.keys.staged(batch, index + 1))
  await database.call('unlink', ...keys).catch(() => {})
}

/** Publishes what is left of committed batches whose producer is dead. */
export async function finishBatches(database: RedisDatabase, signal: AbortSignal): Promise<void> {
  for (const entry of listOf(await database.run(unfinishedScript(), [UNFINISHED_MS]))) {
    const [batch = '', portions = ''] = String(entry).split(':')
    for (let number = 1; number <= Number(portions) && !signal.aborted; number += 1) {
      await database.run(publishScript(), [batch, number, portions])
    }
  }
}

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
