import type { Mill } from '../../../src/client/mill.ts'
import { deadLettersOf } from '../../../src/engine/capability-checks.ts'
import type { DeadLetter, DeadLetters } from '../../../src/engine/dead-letters.ts'
import { MillraceError } from '../../../src/errors.ts'
import { type DeadLetterEntry, type EntryFilter, isHashed, jobIdOf, toEntry, uuidOf } from './entry.ts'

/** Where entries are kept. Bring your own, or use `deskStorage`. */
export interface DeadLetterStorage {
  /** Saving an entry again is harmless. */
  save(entry: DeadLetterEntry): Promise<void>
  findById(id: string): Promise<DeadLetterEntry | null>
  /** Newest first. */
  find(filter: EntryFilter): Promise<readonly DeadLetterEntry[]>
  /** Compare and set: false when the entry was retried already, or is gone. */
  markRetried(id: string, newJobId: string): Promise<boolean>
  /** Returns how many were there. */
  deleteMany(ids: readonly string[]): Promise<number>
}

const WHO = 'dead-letter-manager'
const RETRIED_AS = 'retried as '
const LIMIT_DEFAULT = 100
const PAGE = 500

/**
 * Entries that are the mill's own dead letters: nothing is stored twice, and every act is in the audit. An entry that is
 * retried is discarded as a letter, with the new job's id as the reason, so it is no longer listed or counted.
 */
export function deskStorage(mill: Mill): DeadLetterStorage {
  const letters = deadLettersOf(mill.engine)
  const findById = async (id: string): Promise<DeadLetterEntry | null> => {
    const letter = await letterOf(letters, id)
    return letter === null ? null : toEntry(letter.job, await retriedAs(letters, letter))
  }
  return {
    findById,
    async save(entry) {
      if ((await findById(entry.id)) !== null) return
      throw new MillraceError(
        'ERR_STATE_TRANSITION',
        `job ${entry.originalJobId} is no dead letter; a job becomes one when it has used its attempts`,
      )
    },
    find: async (filter) => {
      const found: DeadLetterEntry[] = []
      for await (const letter of matching(letters, filter)) {
        found.push(toEntry(letter.job, null))
        if (found.length >= (filter.limit ?? LIMIT_DEFAULT)) break
      }
      return found
    },
    async markRetried(id, newJobId) {
      const letter = await letterOf(letters, id)
      if (letter === null) return false
      const [isDone = false] = await letters.discard([letter.job.id], {
        who: WHO,
        reason: `${RETRIED_AS}${newJobId}`,
      })
      return isDone
    },
    async deleteMany(ids) {
      const by = { who: WHO, reason: 'purged' }
      const remove = async (some: readonly string[]): Promise<number> =>
        (await letters.remove(some, by)).filter((isDone) => isDone).length
      const removed = await remove(ids.map(jobIdOf).filter((id) => id !== null))
      if (removed === ids.length) return removed
      return removed + (await remove(await foreignIds(letters, ids, ids.length - removed)))
    },
  }
}

/** By the id that the entry's stands for, by that itself, or, for an id of another program's, by looking through all. */
async function letterOf(letters: DeadLetters, id: string): Promise<DeadLetter | null> {
  const jobId = jobIdOf(id)
  if (jobId === null) return null
  const [letter = null] = await letters.list({ ids: [jobId, id.toLowerCase()] })
  if (letter !== null || !isHashed(id)) return letter
  for await (const other of matching(letters, {})) {
    if (uuidOf(other.job.id) === id.toLowerCase()) return other
  }
  return retriedLetterOf(letters, id.toLowerCase())
}

/** A letter that was retried is discarded, so no list has it; the audit does. */
async function retriedLetterOf(letters: DeadLetters, id: string): Promise<DeadLetter | null> {
  let before: number | undefined
  for (;;) {
    const filter = { who: WHO, action: 'discard', limit: PAGE } as const
    const page = await letters.audit(before === undefined ? filter : { ...filter, before })
    const found = page.find(({ jobId }) => uuidOf(jobId) === id)
    if (found !== undefined) return (await letters.list({ ids: [found.jobId] }))[0] ?? null
    before = page.at(-1)?.seq
    if (page.length < PAGE || before === undefined) return null
  }
}

/** The ids of at most `count` jobs whose ids are no ULIDs. */
async function foreignIds(letters: DeadLetters, ids: readonly string[], count: number): Promise<readonly string[]> {
  const wanted = new Set(ids.map((id) => id.toLowerCase()))
  const found: string[] = []
  for await (const { job } of matching(letters, {})) {
    if (found.length === count) break
    if (wanted.has(uuidOf(job.id))) found.push(job.id)
  }
  return found
}

async function retriedAs(letters: DeadLetters, { job }: DeadLetter): Promise<string | null> {
  if (job.state !== 'discarded') return null
  const [entry] = await letters.audit({ jobId: job.id, action: 'discard', limit: 1 })
  return entry?.who === WHO && entry.reason.startsWith(RETRIED_AS) ? entry.reason.slice(RETRIED_AS.length) : null
}

async function* matching(letters: DeadLetters, filter: EntryFilter): AsyncGenerator<DeadLetter> {
  const { jobType, queue, orgId, failedBefore } = filter
  let after: { completedAtMs: number; id: string } | undefined
  for (;;) {
    const page = await letters.list({
      limit: PAGE,
      // Not by `jobType`: it can be the name of jobs in any queue, which stores do not select by.
      ...(queue !== undefined && { type: queue }),
      ...(failedBefore !== undefined && { beforeMs: failedBefore.getTime() }),
      ...(after !== undefined && { after }),
    })
    yield* page.filter(({ job }) => {
      const entry = toEntry(job, null)
      if (jobType !== undefined && entry.jobType !== jobType) return false
      return orgId === undefined || entry.tenant?.orgId === orgId
    })
    const last = page.at(-1)?.job
    if (page.length < PAGE || last === undefined) return
    after = { completedAtMs: last.completedAtMs ?? 0, id: last.id }
  }
}
