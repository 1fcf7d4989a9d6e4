import { randomUUID } from 'node:crypto'
import { EngineError } from '../../errors.ts'
import type { NewJob } from '../../job/job.ts'
import type { RedisDatabase } from './database.ts'
import { enqueueArgs, PLAIN, PLAIN_FUNCTIONS, STORED } from './enqueue-plain.ts'
import { listOf } from './rows.ts'
import { compose, GOES_ON_WHEN_FULL } from './scripts.ts'

/** Jobs per script: Redis runs nothing else meanwhile. */
export const CHUNK_SIZE = 1_000

/** Far longer than staging takes. What a dead producer staged stays in memory for this long. */
const STAGED_MS = 600_000

/** A producer that has published nothing for this long is dead, or will find that a reaper did it. */
export const UNFINISHED_MS = 10_000

/**
 * Stores a batch of plain jobs, whole or not at all, without blocking Redis for all of them at once. The chunks are staged
 * under keys that nothing reads. One short script commits the batch; then one script per chunk publishes it. A producer
 * that dies before the commit has stored nothing. If it dies later, a reaper publishes the rest. Answers what
 * `receiptsFrom` reads.
 */
export async function storeInChunks(
  database: RedisDatabase,
  jobs: readonly NewJob[],
  { stagedMs = STAGED_MS }: { readonly stagedMs?: number } = {},
): Promise<readonly unknown[]> {
  const batch = randomUUID()
  const chunks = chunksOf(await resolved(database, jobs))
  await stage(database, batch, chunks, stagedMs)
  if (Number(await database.run(commitScript(), [batch, chunks.length])) === 0) {
    await unstage(database, batch, chunks.length)
    throw new EngineError(
      'ERR_STORAGE_BUSY',
      `this batch of ${jobs.length} jobs took longer than ${stagedMs / 1_000} s to send, and nothing of it is stored; enqueue it again in smaller batches`,
    )
  }
  const answers: unknown[] = []
  for (const [index, chunk] of chunks.entries()) {
    const answer = listOf(await database.runKept(publishScript(), [batch, index + 1, chunks.length]))
    // A reaper published it; plain jobs are stored under their own ids.
    answers.push(...(answer.length > 0 ? answer : chunk.flatMap(({ id }) => ['enqueued', id])))
  }
  return answers
}

/** A delay counts from the call, not from when its chunk is published. */
async function resolved(database: RedisDatabase, jobs: readonly NewJob[]): Promise<readonly NewJob[]> {
  if (jobs.every(({ delayMs }) => delayMs === 0)) return jobs
  const nowMs = database.now === '' ? await database.serverNowMs() : Number(database.now)
  return jobs.map((job) =>
    job.runAtMs === null && job.delayMs > 0 ? { ...job, runAtMs: nowMs + job.delayMs, delayMs: 0 } : job,
  )
}

function chunksOf(jobs: readonly NewJob[]): readonly (readonly NewJob[])[] {
  const length = Math.ceil(jobs.length / CHUNK_SIZE)
  return Array.from({ length }, (_, index) => jobs.slice(index * CHUNK_SIZE, (index + 1) * CHUNK_SIZE))
}

async function stage(
  database: RedisDatabase,
  batch: string,
  chunks: readonly (readonly NewJob[])[],
  stagedMs: number,
): Promise<void> {
  try {
    for (const [index, chunk] of chunks.entries()) {
      // Like the arguments of a script, the list begins with the time.
      await database.run(stageScript(), [batch, index + 1, stagedMs, '', ...enqueueArgs(chunk)])
    }
  } catch (error) {
    await unstage(database, batch, chunks.length)
    throw error
  }
}

/** For a batch that is not committed. If this fails too, the rest expires. */
async function unstage(database: RedisDatabase, batch: string, chunks: number): Promise<void> {
  const keys = Array.from({ length: chunks }, (_, index) => database.keys.staged(batch, index + 1))
  await database.call('unlink', ...keys).catch(() => {})
}

/** Publishes the rest of committed batches whose producer died. */
export async function finishBatches(database: RedisDatabase, signal: AbortSignal): Promise<void> {
  for (const entry of listOf(await database.run(unfinishedScript(), [UNFINISHED_MS]))) {
    const [batch = '', chunks = ''] = String(entry).split(':')
    for (let number = 1; number <= Number(chunks) && !signal.aborted; number += 1) {
      await database.run(publishScript(), [batch, number, chunks])
    }
  }
}

const STAGED = `
local function staged(batch, number) return own('staged:' .. batch .. ':' .. number) end
`

/**
 * Stores a chunk under a key that nothing reads: the arguments of `enqueuePlainScript` as a list. It expires unless the
 * batch is committed, so a dead producer leaves nothing behind. ARGV: time, batch, number of the chunk,
 * for how long (ms), and what the list holds.
 */
export const stageScript = compose(
  'stage',
  {},
  STAGED,
  `
local key = staged(ARGV[2], ARGV[3])
-- Lua's stack limits how many arguments one command takes.
for from = 5, #ARGV, 2000 do call('RPUSH', key, unpack(ARGV, from, math.min(from + 1999, #ARGV))) end
call('PEXPIRE', key, ARGV[4])
`,
)

/**
 * From here on the batch counts as stored: its chunks stay until each is published. ARGV: time, batch, number of chunks.
 * Answers 0 if a chunk has expired; then nothing is stored.
 */
export const commitScript = compose(
  'commit',
  {},
  STAGED,
  `
local batch, chunks = ARGV[2], tonumber(ARGV[3])
for number = 1, chunks do
  if call('EXISTS', staged(batch, number)) == 0 then return 0 end
end
-- Full memory does not stop it: the batch already has its memory.
${GOES_ON_WHEN_FULL}
call('ZADD', own('batches'), now, batch .. ':' .. chunks)
for number = 1, chunks do call('PERSIST', staged(batch, number)) end
return 1
`,
)

/**
 * Makes the jobs of a chunk visible, once. Chunks are published in order, so the last one completes the batch. Full memory
 * does not stop it: the jobs replace the list. ARGV: time, batch, number of the chunk,
 * number of chunks. Answers like `enqueuePlainScript`, or nothing if it was published before.
 */
export const publishScript = compose(
  'publish',
  { functions: PLAIN_FUNCTIONS },
  STORED,
  STAGED,
  `
${GOES_ON_WHEN_FULL}
local chunk, isLast, batch = staged(ARGV[2], ARGV[3]), ARGV[3] == ARGV[4], ARGV[2] .. ':' .. ARGV[4]
local function done()
  call('DEL', chunk)
  if isLast then call('ZREM', own('batches'), batch) end
end
local ARGV = call('LRANGE', chunk, 0, -1)
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
 * Committed batches that have been unfinished for so long that the producer is taken for dead; also those dated in the
 * future, because the server's clock was set back since. ARGV: time, ms.
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
