import type { Mill } from '../../src/client/mill.ts'
import { deadLettersOf } from '../../src/engine/admission.ts'
import type { DeadLetter, DeadLetters } from '../../src/engine/dead-letters.ts'
import { MillraceError } from '../../src/errors.ts'
import { type DeadLetterEntry, type EntryFilter, jobIdOf, toEntry } from './entry.ts'

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

const WHO = 'dead-letter-processor'
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
    const jobId = jobIdOf(id)
    const letter = jobId === null ? null : await letters.find(jobId)
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
      const jobId = jobIdOf(id)
      return jobId !== null && letters.discard(jobId, { who: WHO, reason: `${RETRIED_AS}${newJobId}` })
    },
    deleteMany: (ids) =>
      letters.remove(
        ids.map(jobIdOf).filter((id) => id !== null),
        { who: WHO, reason: 'purged' },
      ),
  }
}

async function retriedAs(letters: DeadLetters, { job }: DeadLetter): Promise<string | null> {
  if (job.ended !== 'discarded') return null
  const [entry] = await letters.audit({ jobId: job.id, action: 'discard', limit: 1 })
  return entry?.who === WHO && entry.reason.startsWith(RETRIED_AS) ? entry.reason.slice(RETRIED_AS.length) : null
}

async function* matching(letters: DeadLetters, filter: EntryFilter): AsyncGenerator<DeadLetter> {
  const { jobType, orgId, failedBefore } = filter
  let after: { completedAtMs: number; id: string } | undefined
  for (;;) {
    const page = await letters.list({
      limit: PAGE,
      ...(jobType !== undefined && { type: jobType }),
      ...(failedBefore !== undefined && { beforeMs: failedBefore.getTime() }),
      ...(after !== undefined && { after }),
    })
    yield* page.filter(({ job }) => orgId === undefined || job.tenant?.orgId === orgId)
    const last = page.at(-1)?.job
    if (page.length < PAGE || last === undefined) return
    after = { completedAtMs: last.completedAtMs ?? 0, id: last.id }
  }
}
