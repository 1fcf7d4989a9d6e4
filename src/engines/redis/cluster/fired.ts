/**
 * Jobs that are saved with a record, as the runs of a schedule are. The record is in the shared store and each job in that
 * of its type, so no step can write both. One step saves the record and notes the jobs beside it; then they are stored,
 * and the note is removed. If the process dies in between, a reaper stores them: jobs that are there already are known
 * by their ids.
 */
import { randomUUID } from 'node:crypto'
import type { Receipt } from '../../../engine/engine.ts'
import type { NewRecord, RecordKind } from '../../../engine/records.ts'
import type { NewJob } from '../../../job/job.ts'
import { UNFINISHED_MS } from '../large-batch.ts'
import { EXPECTED, KIND, recordArgs } from '../records.ts'
import { listOf, parse } from '../rows.ts'
import { compose } from '../scripts.ts'
import { enqueueByType } from './enqueue.ts'
import type { TypeStores } from './stores.ts'

interface Saved {
  readonly kind: RecordKind
  readonly record: NewRecord
  readonly expected: string | null
  readonly ttlMs: number | undefined
}

/** Null when the record has another revision: then nothing has changed. */
export async function saveFiring(
  stores: TypeStores,
  { kind, record, expected, ttlMs }: Saved,
  jobs: readonly NewJob[],
): Promise<readonly Receipt[] | null> {
  const { database } = stores.shared
  const note = randomUUID()
  const args = [...recordArgs(kind, record, expected, ttlMs), note, JSON.stringify(jobs)]
  if ((await database.runKept(saveFiringScript(), args)) !== 1) return null
  const receipts = await enqueueByType(stores, jobs)
  // If this fails, a reaper finds the jobs stored.
  await database.run(forgetFiredScript(), [note]).catch(() => {})
  return receipts
}

/** ARGV: as for `EXPECTED`, and then the name of the note and the jobs as JSON. */
const saveFiringScript = compose(
  'save-firing',
  {},
  KIND,
  EXPECTED,
  `
if not isExpected() then return 0 end
write(ARGV[3], ARGV[4], ARGV[5], ARGV[6])
call('HSET', own('fired'), ARGV[9], string.format('%.0f', now) .. ':' .. ARGV[10])
return 1
`,
)

/** ARGV: time, name of the note. */
const forgetFiredScript = compose('forget-fired', {}, `return call('HDEL', own('fired'), ARGV[2])`)

/** Stores what others noted and did not store. */
export async function finishFired(stores: TypeStores): Promise<void> {
  const { database } = stores.shared
  const notes = listOf(await database.run(unfinishedFiredScript(), [UNFINISHED_MS])).map(String)
  for (let at = 0; at + 1 < notes.length; at += 2) {
    const jobs = parse(notes[at + 1])
    if (Array.isArray(jobs)) await enqueueByType(stores, jobs as readonly NewJob[])
    await database.run(forgetFiredScript(), [notes[at] ?? ''])
  }
}

/** ARGV: time, age (ms). Answers name and jobs of each note that is older. */
const unfinishedFiredScript = compose(
  'unfinished-fired',
  {},
  `
local notes, found = call('HGETALL', own('fired')), {}
for at = 1, #notes, 2 do
  local noted, jobs = string.match(notes[at + 1], '^(%d+):(.*)$')
  if noted and tonumber(noted) <= now - tonumber(ARGV[2]) then
    found[#found + 1] = notes[at]
    found[#found + 1] = jobs
  end
end
return found
`,
)
