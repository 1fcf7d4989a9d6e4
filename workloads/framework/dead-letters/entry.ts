import { createHash } from 'node:crypto'
import { OptionError } from '../../../src/errors.ts'
import type { JobView, StoredOptions, Tenant } from '../../../src/job/job.ts'
import { type OptionNames, refuseUnknown } from '../../../src/job/known-options.ts'
import { tenantIn } from '../worker-job.ts'

export interface EntryError {
  readonly message: string
  readonly stack?: string
  readonly code?: string
}

/** A dead letter in the form of the worker framework, with what a retry needs to lose nothing. */
export interface DeadLetterEntry {
  /** A UUID that follows from the job's id, so a job that is moved twice is one entry. */
  readonly id: string
  readonly originalJobId: string
  /** The name of the job in a queue of many names, otherwise its type. */
  readonly jobType: string
  /** The type of the job, where `jobType` is its name. */
  readonly queue?: string
  readonly jobData: unknown
  /** Another program stored something that is no JSON: then `jobData` is its text, and a retry stores that again. */
  readonly unparsed?: true
  readonly error: EntryError
  /** Starts that were made. */
  readonly attempts: number
  readonly failedAt: Date
  readonly tenant?: Tenant
  readonly priority: number
  readonly payloadVersion: number
  readonly options: StoredOptions | null
  /** The job that a retry made of it. */
  readonly retriedAs: string | null
}

export interface EntryFilter {
  /** As entries have it: the type, or the name of jobs in a queue of many. */
  readonly jobType?: string
  /** Only of this queue of many names. */
  readonly queue?: string
  readonly orgId?: string
  readonly failedBefore?: Date
  /** Default: 100. */
  readonly limit?: number
}

const FILTER_NAMES: OptionNames<EntryFilter> = {
  ...{ jobType: true, queue: true, orgId: true, failedBefore: true, limit: true },
}

/** A misspelt or invalid condition would select the wrong letters. */
export function checkFilter(filter: EntryFilter): EntryFilter {
  refuseUnknown(filter, FILTER_NAMES, 'the filter of dead letters')
  const { jobType, queue, orgId, failedBefore, limit } = filter
  for (const [name, value] of Object.entries({ jobType, queue, orgId })) {
    if (value !== undefined && (typeof value !== 'string' || value === '')) {
      throw new OptionError(`'${name}' of the filter must be a text; leave it out for all`)
    }
  }
  if (failedBefore !== undefined && (!(failedBefore instanceof Date) || Number.isNaN(failedBefore.getTime()))) {
    throw new OptionError(`'failedBefore' is not a valid date; give a Date`)
  }
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 1)) {
    throw new OptionError(`'limit' is ${limit}; give a whole number from 1`)
  }
  return filter
}

export function toEntry(view: JobView, retriedAs: string | null): DeadLetterEntry {
  const { error } = view
  const data = dataOf(view.payload)
  const tenant = view.tenant ?? tenantIn(data.jobData)
  const name = view.options?.name ?? view.type
  return {
    id: uuidOf(view.id),
    originalJobId: view.id,
    jobType: name,
    ...(name !== view.type && { queue: view.type }),
    ...data,
    error: {
      message: error?.message ?? 'no error recorded',
      ...(error?.stack != null && { stack: error.stack }),
      ...(error?.code != null && { code: error.code }),
    },
    attempts: view.attempt,
    failedAt: new Date(view.completedAtMs ?? view.updatedAtMs),
    ...(tenant !== null && { tenant }),
    priority: view.priority,
    payloadVersion: view.payloadVersion,
    options: view.options,
    retriedAs,
  }
}

/** One unreadable job must not hide all other entries. */
function dataOf(payload: string): Pick<DeadLetterEntry, 'jobData' | 'unparsed'> {
  try {
    return { jobData: JSON.parse(payload) }
  } catch {
    return { jobData: payload, unparsed: true }
  }
}

const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A ULID and a UUID are the same 128 bits, written differently. An id of another program's is hashed. */
export function uuidOf(jobId: string): string {
  if (UUID.test(jobId)) return jobId.toLowerCase()
  if (!ULID.test(jobId)) return hashed(jobId)
  let bits = 0n
  for (const letter of jobId) bits = bits * 32n + BigInt(LETTERS.indexOf(letter))
  return withDashes(bits.toString(16).padStart(32, '0'))
}

/** Version 8 is that of UUIDs made in a way of one's own. */
const HASHED = /^.{14}8.{4}[89ab]/

function hashed(jobId: string): string {
  const hex = createHash('sha256').update(`job ${jobId}`).digest('hex')
  return withDashes(`${hex.slice(0, 12)}8${hex.slice(13, 16)}8${hex.slice(17, 32)}`)
}

/** Whether the id may be that of another program's job, which does not follow from it. */
export function isHashed(uuid: string): boolean {
  return UUID.test(uuid) && HASHED.test(uuid)
}

export function withDashes(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Null for what is no UUID. */
export function jobIdOf(uuid: string): string | null {
  if (!UUID.test(uuid)) return null
  let bits = BigInt(`0x${uuid.replaceAll('-', '')}`)
  let id = ''
  for (let place = 0; place < 26; place += 1) {
    id = `${LETTERS[Number(bits % 32n)]}${id}`
    bits /= 32n
  }
  return id
}
