import { createHash } from 'node:crypto'
import type { Mill } from '../../../src/client/mill.ts'
import { EngineError, MillraceError, OptionError, UnknownJobError } from '../../../src/errors.ts'
import { toErrorRecord } from '../../../src/job/error-record.ts'
import { ATTEMPTS_DEFAULT, type JobRef } from '../../../src/job/options.ts'
import { runbookEntry } from '../../../src/observe/alerts/runbook.ts'
import type { Alerter } from '../../../src/observe/index.ts'
import { isCriticalJobType } from '../job-types.ts'
import { checkFilter, type DeadLetterEntry, type EntryFilter, jobIdOf, toEntry, withDashes } from './entry.ts'
import { type DeadLetterStorage, deskStorage } from './storage.ts'

export interface RetriedJob {
  readonly id: string
  readonly type: string
  readonly attempts: number
  /** The job that died. */
  readonly originalJobId: string
}

/**
 * Dead letters of the worker framework: a retry is a new job. `openDesk` replays the same job instead, with its id,
 * its key and its history, and is the better choice for new code.
 *
 * `storage` is by default the mill's own dead letters. The alert of a critical dead letter is the mill's (`alerter` of `open`);
 * give an `alerter` here only beside a storage of your own and a mill without one, or it is sent twice.
 *
 * @example
 * const deadLetters = new DeadLetterManager(mill)
 * for (const { id } of await deadLetters.find({ jobType: 'webhook-dispatch' })) await deadLetters.retry(id)
 */
export class DeadLetterManager {
  readonly #mill: Mill
  readonly #storage: DeadLetterStorage
  readonly #alerter: Alerter | null

  constructor(mill: Mill, storage: DeadLetterStorage = deskStorage(mill), alerter: Alerter | null = null) {
    this.#mill = mill
    this.#storage = storage
    this.#alerter = alerter
  }

  /**
   * Stores the entry of a job that has died, with the starts it made and its tenant. The worker moves a job when its attempts
   * are used up; a handler that throws `NonRetryable` has its job moved at once. `error` counts if the engine has recorded none.
   */
  async moveToDeadLetter(job: JobRef, error?: unknown): Promise<DeadLetterEntry> {
    const jobId = typeof job === 'string' ? job : job.id
    const view = await this.#mill.job(jobId)
    if (view === null) throw new UnknownJobError(jobId)
    if (view.state !== 'dead_letter') {
      throw new MillraceError(
        'ERR_STATE_TRANSITION',
        `job ${jobId} is ${view.state}; a worker moves it when its attempts are used up, or throw NonRetryable in its handler`,
      )
    }
    const recorded = view.error === null && error !== undefined ? { ...view, error: toErrorRecord(error) } : view
    const entry = toEntry(recorded, null)
    const isNew = this.#alerter !== null && (await this.#storage.findById(entry.id)) === null
    await this.#storage.save(entry)
    if (isNew && isCriticalJobType(entry.jobType)) await this.#alert(entry)
    return entry
  }

  /** An alerter that fails must not fail the move, which is done. */
  async #alert({ jobType, originalJobId, attempts, error, tenant, failedAt }: DeadLetterEntry): Promise<void> {
    try {
      await this.#alerter?.send({
        rule: 'CriticalDeadLetter',
        severity: 'error',
        severityLabel: 'high',
        title: `Critical job moved to dead letter: ${jobType}`,
        text: `job ${originalJobId} failed after ${attempts} attempts: ${error.message}`,
        labels: { jobType, jobId: originalJobId, ...(tenant !== undefined && { tenantId: tenant.orgId }) },
        value: null,
        runbook: runbookEntry('CriticalDeadLetters'),
        sinceMs: failedAt.getTime(),
        metadata: { jobType, jobId: originalJobId, tenant: tenant ?? null },
      })
    } catch (failure) {
      this.#mill.events.emit('worker.error', { worker: 'dead-letter-manager', during: 'alert', error: failure })
    }
  }

  async find(filter: EntryFilter = {}): Promise<readonly DeadLetterEntry[]> {
    return this.#storage.find(checkFilter(filter))
  }

  async findById(id: string): Promise<DeadLetterEntry | null> {
    return this.#storage.findById(id)
  }

  /**
   * Enqueues the entry's type and data as a new job with three attempts, which is removed when it completes. All else
   * that it had, it keeps. Its id follows from the entry, so of two who retry one entry at once, one stores a
   * job and both are given it; an entry that was retried before is refused.
   */
  async retry(deadLetterId: string): Promise<RetriedJob> {
    const entry = await this.#storage.findById(deadLetterId)
    if (entry === null) throw new MillraceError('ERR_JOB_UNKNOWN', `Dead letter not found: ${deadLetterId}`)
    if (entry.retriedAs !== null) {
      throw new MillraceError(
        'ERR_STATE_TRANSITION',
        `dead letter ${deadLetterId} was retried already; look at job ${entry.retriedAs}`,
      )
    }
    const id = retryIdOf(entry)
    const [receipt] = await this.#mill.engine.enqueue([
      {
        id,
        type: entry.queue ?? entry.jobType,
        payload: payloadOf(entry),
        payloadVersion: entry.payloadVersion,
        priority: entry.priority,
        attempts: ATTEMPTS_DEFAULT,
        delayMs: 0,
        runAtMs: null,
        key: null,
        latest: null,
        tenant: entry.tenant ?? null,
        options: { ...entry.options, keepCompleted: 0 },
        after: null,
      },
    ])
    if (receipt === undefined) throw new EngineError('ERR_STORAGE_FAILED', 'the engine returned no receipt for one job')
    // After the job is stored: a crash between the two leaves an entry that can be retried, under the same job id.
    await this.#storage.markRetried(deadLetterId, id)
    return { id, type: entry.jobType, attempts: ATTEMPTS_DEFAULT, originalJobId: entry.originalJobId }
  }

  /**
   * Deletes what matches, in pages, and returns how many that were. Critical types are left alone unless forced, because
   * nothing else would tell that such a job was never done.
   */
  async purge(filter: EntryFilter, { force = false }: { readonly force?: boolean } = {}): Promise<number> {
    checkFilter(filter)
    const empty = Object.entries(filter).find(([, value]) => value === undefined)
    if (empty !== undefined) {
      throw new OptionError(
        `'${empty[0]}' is undefined, which would purge letters of all values; leave it out if you want that`,
      )
    }
    let purged = 0
    /** Those that stay come first in every page, so each page is longer by them. */
    let kept = 0
    for (let left = filter.limit ?? Number.POSITIVE_INFINITY; left > 0; ) {
      const limit = kept + Math.min(left, PAGE)
      const page = await this.#storage.find({ ...filter, limit })
      const doomed = page.filter(({ jobType }) => force || !isCriticalJobType(jobType))
      const deleted = await this.#storage.deleteMany(doomed.map(({ id }) => id))
      purged += deleted
      left -= doomed.length
      const stays = page.length - doomed.length
      if (page.length < limit || (deleted === 0 && stays === kept)) break
      kept = stays
    }
    return purged
  }
}

const PAGE = 500

function payloadOf({ jobData, unparsed }: DeadLetterEntry): string {
  return unparsed === true && typeof jobData === 'string' ? jobData : JSON.stringify(jobData)
}

/** The time of the dead job and a hash of its entry: the same for each retry, and sorted where the job was, if its id says so. */
function retryIdOf({ id, originalJobId }: DeadLetterEntry): string {
  const hash = createHash('sha256').update(`retry of ${id}`).digest('hex')
  const time = (jobIdOf(id) ?? originalJobId).slice(0, 10)
  const rest = jobIdOf(withDashes(hash.slice(0, 32))) ?? ''
  return `${time}${rest.slice(10)}`
}
